"""Chat-model clients against a real HTTP server on loopback."""

import threading
import time

import pytest

from recall_runtime.config import ModelSettings
from recall_runtime.errors import ModelError, ModelTimeoutError
from recall_runtime.models.protocol import ChatMessage, ChatModel, ChatRequest, ChatRole, ToolCall, ToolDefinition
from recall_runtime.models.registry import model_from
from tests.support.model_server import Reply, model_server, openai_reply

KEY = "sk-test-0123456789abcdef"
SCHEMA = {"type": "object", "properties": {"operations": {"type": "array"}}, "required": ["operations"]}
ASK = ChatRequest((ChatMessage(ChatRole.SYSTEM, "Be brief."), ChatMessage(ChatRole.USER, "Say hello.")))
PROVIDERS = ("openai-compatible", "anthropic", "ollama")
TOOL = ToolDefinition("memory_search", "Search.", {"type": "object", "properties": {"query": {"type": "string"}}})


def client(provider: str, url: str, timeout: float = 10.0) -> ChatModel:
    base = url + "/v1" if provider == "openai-compatible" else url
    settings = ModelSettings(
        provider=provider, base_url=base, model="small", api_key_env="MODEL_KEY", timeout_seconds=timeout
    )
    model = model_from(settings, environ={"MODEL_KEY": KEY})
    assert model is not None
    return model


def reply(provider: str, text: str) -> Reply:
    if provider == "openai-compatible":
        return openai_reply(text)
    if provider == "anthropic":
        return Reply(
            {
                "model": "small",
                "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 11, "output_tokens": 5},
            }
        )
    return Reply(
        {
            "model": "small",
            "message": {"role": "assistant", "content": text},
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 11,
            "eval_count": 5,
        }
    )


def schema_reply(provider: str) -> Reply:
    if provider == "anthropic":
        block = {"type": "tool_use", "id": "t", "name": "answer", "input": {"operations": []}}
        return Reply({"content": [block], "stop_reason": "tool_use"})
    return reply(provider, '{"operations": []}')


def tool_reply(provider: str) -> Reply:
    if provider == "openai-compatible":
        call = {"id": "c1", "type": "function", "function": {"name": "memory_search", "arguments": '{"query": "key"}'}}
        return Reply({"choices": [{"message": {"content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}]})
    if provider == "anthropic":
        block = {"type": "tool_use", "id": "c1", "name": "memory_search", "input": {"query": "key"}}
        return Reply({"content": [block], "stop_reason": "tool_use"})
    call = {"function": {"name": "memory_search", "arguments": {"query": "key"}}}
    return Reply({"message": {"content": "", "tool_calls": [call]}, "done_reason": "stop"})


@pytest.mark.parametrize("provider", PROVIDERS)
def test_answer_carries_text_and_token_counts(provider: str) -> None:
    with model_server(reply(provider, "Hello.")) as server:
        answer = client(provider, server.url).complete(ASK)
    assert (answer.text, answer.prompt_tokens, answer.answer_tokens) == ("Hello.", 11, 5)


@pytest.mark.parametrize(
    ("provider", "path", "header", "value"),
    [
        ("openai-compatible", "/v1/chat/completions", "authorization", f"Bearer {KEY}"),
        ("anthropic", "/v1/messages", "x-api-key", KEY),
        ("ollama", "/api/chat", "authorization", f"Bearer {KEY}"),
    ],
)
def test_request_goes_to_the_providers_path_with_the_key(provider: str, path: str, header: str, value: str) -> None:
    with model_server(reply(provider, "ok")) as server:
        client(provider, server.url).complete(ASK)
    assert server.asked[0].path == path
    assert server.asked[0].headers[header] == value


def test_system_text_goes_where_the_messages_format_wants_it() -> None:
    with model_server(reply("anthropic", "ok")) as server:
        client("anthropic", server.url).complete(ASK)
    payload = server.asked[0].payload
    assert payload["system"] == "Be brief."
    assert payload["messages"] == [{"role": "user", "content": "Say hello."}]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_schema_answer_is_parsed(provider: str) -> None:
    with model_server(schema_reply(provider)) as server:
        answer = client(provider, server.url).complete(ChatRequest(ASK.messages, schema=SCHEMA))
    assert answer.data == {"operations": []}


@pytest.mark.parametrize(
    ("provider", "field"),
    [("openai-compatible", "response_format"), ("anthropic", "tool_choice"), ("ollama", "format")],
)
def test_schema_is_handed_to_the_server(provider: str, field: str) -> None:
    with model_server(schema_reply(provider)) as server:
        client(provider, server.url).complete(ChatRequest(ASK.messages, schema=SCHEMA))
    assert field in server.asked[0].payload


def test_server_without_response_format_gets_the_schema_in_words_from_then_on() -> None:
    refused = Reply({"error": {"message": "response_format is not supported"}}, status=400)
    with model_server(refused, openai_reply('{"operations": []}')) as server:
        model = client("openai-compatible", server.url)
        assert model.complete(ChatRequest(ASK.messages, schema=SCHEMA)).data == {"operations": []}
        model.complete(ChatRequest(ASK.messages, schema=SCHEMA))
    assert ["response_format" in asked.payload for asked in server.asked] == [True, False, False]
    assert '"operations"' in server.asked[1].payload["messages"][0]["content"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_tool_call_comes_back_with_its_arguments(provider: str) -> None:
    with model_server(tool_reply(provider)) as server:
        answer = client(provider, server.url).complete(ChatRequest(ASK.messages, tools=(TOOL,)))
    assert [(call.name, dict(call.arguments)) for call in answer.tool_calls] == [("memory_search", {"query": "key"})]
    assert "memory_search" in str(server.asked[0].payload["tools"])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_tool_result_is_sent_back_with_its_call(provider: str) -> None:
    call = ToolCall("c1", "memory_search", {"query": "key"})
    messages = (
        *ASK.messages,
        ChatMessage(ChatRole.ASSISTANT, "", tool_calls=(call,)),
        ChatMessage(ChatRole.TOOL, "left hook", call_id="c1"),
    )
    with model_server(reply(provider, "Left.")) as server:
        client(provider, server.url).complete(ChatRequest(messages, tools=(TOOL,)))
    assert "left hook" in str(server.asked[0].payload["messages"][-1])
    assert "memory_search" in str(server.asked[0].payload["messages"][-2])


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (Reply({"error": {"message": "no such key"}}, status=401), "api_key_env"),
        (Reply({"error": "model not found"}, status=404), "base_url"),
        (Reply({"error": {"message": "slow down"}}, status=429, headers={"retry-after": "7"}), "Wait 7 seconds"),
        (Reply(b"boom", status=500, content_type="text/plain"), "status 500"),
        (Reply(b"", status=302, headers={"location": "http://127.0.0.1:9/"}), "status 302"),
        (Reply(b'{"choices": [{"mess'), "broken JSON"),
        (Reply(b"\xff\xfe\x00"), "broken JSON"),
        (Reply(b"<html></html>", content_type="text/html"), "text/html instead of JSON"),
        (Reply(b"[1, 2]"), "no object"),
        (Reply(b"{}"), "answered without"),
        (Reply(b'{"choices": [{"message": {"content": "hal', promised_length=900), "can't be reached"),
    ],
    ids=["401", "404", "429", "500", "redirect", "cut-json", "not-utf8", "wrong-type", "array", "empty", "cut-body"],
)
def test_failure_is_one_line_with_a_cure(provider: str, bad: Reply, says: str) -> None:
    with model_server(bad) as server, pytest.raises(ModelError) as raised:
        client(provider, server.url).complete(ASK)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("provider", "bad"),
    [
        ("openai-compatible", openai_reply("", finish_reason="content_filter")),
        ("openai-compatible", Reply({"choices": [{"message": {"content": None, "refusal": "I won't."}}]})),
        ("anthropic", Reply({"content": [], "stop_reason": "refusal"})),
    ],
)
def test_refusal_is_an_error_that_says_so(provider: str, bad: Reply) -> None:
    with model_server(bad) as server, pytest.raises(ModelError, match="refused to answer"):
        client(provider, server.url).complete(ASK)


@pytest.mark.parametrize(
    ("provider", "bad"),
    [
        ("openai-compatible", openai_reply('{"operations": [', finish_reason="length")),
        ("anthropic", Reply({"content": [{"type": "text", "text": "{"}], "stop_reason": "max_tokens"})),
        ("ollama", Reply({"message": {"content": "{"}, "done_reason": "length"})),
    ],
)
def test_answer_cut_at_the_token_limit_is_never_taken(provider: str, bad: Reply) -> None:
    with model_server(bad) as server, pytest.raises(ModelError, match="was cut at 2048 tokens"):
        client(provider, server.url).complete(ChatRequest(ASK.messages, schema=SCHEMA))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_chatter_instead_of_json_is_an_error(provider: str) -> None:
    with (
        model_server(reply(provider, 'Sure! {"operations": []}')) as server,
        pytest.raises(ModelError, match="no JSON"),
    ):
        client(provider, server.url).complete(ChatRequest(ASK.messages, schema=SCHEMA))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_server_that_never_answers_is_cut_at_the_limit(provider: str) -> None:
    with model_server(Reply(hang=True)) as server, pytest.raises(ModelTimeoutError, match=r"within 0\.3 s"):
        client(provider, server.url, timeout=0.3).complete(ASK)


def test_body_that_drips_is_cut_at_the_limit() -> None:
    slow = Reply(reply("ollama", "x" * 4000).payload(), drip_seconds=0.05)
    with model_server(slow) as server, pytest.raises(ModelTimeoutError):
        client("ollama", server.url).complete(ChatRequest(ASK.messages, timeout_seconds=0.4))


def test_slow_answer_within_the_limit_is_taken() -> None:
    slow = Reply(reply("ollama", "ok").payload(), drip_seconds=0.001)
    with model_server(slow) as server:
        assert client("ollama", server.url).complete(ASK).text == "ok"


def test_cancelled_call_ends_long_before_its_limit() -> None:
    cancel = threading.Event()
    with model_server(Reply(hang=True)) as server:
        threading.Thread(target=lambda: (server.arrived.wait(5), cancel.set())).start()
        before = time.monotonic()
        with pytest.raises(ModelTimeoutError, match="cancelled"):
            client("ollama", server.url, timeout=60).complete(ASK, cancel=cancel)
    assert time.monotonic() - before < 30  # half the limit: proves the cut, not a speed


def test_missing_server_is_named_with_the_cure() -> None:
    with model_server(Reply()) as server:
        url = server.url
    with pytest.raises(ModelError, match=r"can't be reached.*model\.base_url"):
        client("ollama", url).complete(ASK)


def test_endless_answer_is_refused() -> None:
    huge = Reply(b'{"message": "' + b"x" * (9 * 1024 * 1024) + b'"}')
    with model_server(huge) as server, pytest.raises(ModelError, match="more than"):
        client("ollama", server.url).complete(ASK)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_key_appears_in_no_error_and_no_repr(provider: str) -> None:
    echo = Reply({"error": {"message": f"bad key {KEY} \x1b[31m"}}, status=401)
    with model_server(echo) as server:
        model = client(provider, server.url)
        with pytest.raises(ModelError) as raised:
            model.complete(ASK)
    assert KEY not in str(raised.value) + repr(model)
    assert "\x1b" not in str(raised.value)


def test_two_calls_at_once_share_nothing() -> None:
    with model_server(openai_reply("ok")) as server:
        model = client("openai-compatible", server.url)
        texts: list[str] = []
        threads = [threading.Thread(target=lambda: texts.append(model.complete(ASK).text)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert texts == ["ok"] * 8
