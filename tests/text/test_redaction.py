"""Masking: nothing live comes through, nothing harmless is hidden."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.text.redaction import redact
from tests.support.fake_secrets import KEY_BEGIN as KEY
from tests.support.fake_secrets import KEY_END as END

CASES = Path(__file__).parent.parent / "cases"
REAL = Path(__file__).parent.parent / "cases_real"
EXPECTED = json.loads((CASES / "23-secrets/expected.json").read_text(encoding="utf-8"))


def _texts() -> list[str]:
    rows = (CASES / "23-secrets/sessions/keys.jsonl").read_text(encoding="utf-8").splitlines()
    messages = [json.loads(row)["message"]["content"][0]["text"] for row in rows[1:]]
    return [*messages, (CASES / "23-secrets/memory/2026-03-18.md").read_text(encoding="utf-8")]


@pytest.mark.parametrize("secret", EXPECTED["never_in_any_derived_store"])
def test_no_secret_of_case_23_survives(secret: str) -> None:
    assert any(secret in text for text in _texts())
    assert not any(secret in redact(text) for text in _texts())


@pytest.mark.parametrize("harmless", EXPECTED["still_there"])
def test_look_alikes_of_case_23_stay(harmless: str) -> None:
    assert any(harmless in redact(text) for text in _texts())


@pytest.mark.parametrize(
    "needle",
    [
        "access_token",
        "refresh_token",
        "AfjbgVs7ro4OwKwiMD3o",
        "qTejR09kVbxEAHuP8",
        "pWnwi20000hv5BD",
        "0DDLx17u",
        "hunter-EXAMPLE-13703",
    ],
)
def test_no_credential_of_the_pasted_dump_survives(needle: str) -> None:
    text = (REAL / "12-secret-paste-and-control-tokens.md").read_text(encoding="utf-8")
    assert needle in text
    assert needle not in redact(text)
    assert "13702" in redact(text)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        pytest.param("sk-abcdef12", "***", id="worked: short value"),
        pytest.param("sk-abcdefghijklmnopqrstuv", "sk-abc…stuv", id="worked: long value"),
        pytest.param("DB_PASSWORD=hunter22", "DB_PASSWORD=***", id="environment name"),
        pytest.param("api_key: abc123", "api_key: ***", id="assigned key"),
        pytest.param('{"password": "letmein"}', '{"***": "***"}', id="JSON field"),
        pytest.param("run --token abc --password=xyz", "run --token *** --password=***", id="flags"),
        pytest.param("Authorization: Bearer abc", "Authorization: Bearer ***", id="header of any length"),
        pytest.param("postgres://u:p4ss@db/x", "postgres://u:***@db/x", id="password in an address"),
        pytest.param("card 4242 4242 4242 4242.", "card ***.", id="card number"),
        pytest.param("The wifi password is sunshine.", "The wifi password is ***.", id="prose"),
        pytest.param("密码是 abc12345。", "密码是 ***。", id="Chinese prose"),
        pytest.param("Das Passwort lautet Geheim1.", "Das Passwort lautet ***.", id="German prose"),
        pytest.param("пароль: qwerty7", "пароль: ***", id="Russian label"),
        pytest.param("123456789:AAabcdefghijklmnopqrstuvwxyz0123456", "123456…3456", id="bot token"),
        pytest.param(
            f"{KEY}\nMIIE\nabcd\n{END}\nrest",
            f"{KEY}\n…\n{END}\nrest",
            id="key block over lines",
        ),
    ],
)
def test_each_family_is_masked(text: str, masked: str) -> None:
    assert redact(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "password: ***",
        "The password is stored in the vault.",
        "The keyboard and the monkey wrench",
        "max_tokens: 4000",
        "Session Key: agent:main:main",
        "every Monday renew the token; Lan knows",
        "task-abcdefghijklmnop and desk-abcdefghijklmnop",
        "card-like 4242 4242 4242 4241",
        "instant 1772608360000 and 1772608360000000",
        "mail noor@example.net, see https://wiki.example.net/a",
    ],
)
def test_look_alikes_are_left_alone(text: str) -> None:
    assert redact(text) == text


_PARTS = st.sampled_from(
    [
        "password",
        ": ",
        "=",
        "token",
        " is ",
        "sk-",
        "abcdefgh1234567890",
        "eyJ",
        ".",
        "://",
        "@",
        "4242 4242 4242 4242",
        '"',
        "Bearer ",
        "\n",
        "***",
        "…",
        KEY,
    ]
)


@given(st.one_of(st.text(max_size=200), st.lists(_PARTS, max_size=25).map("".join)))
def test_masking_twice_changes_nothing_more(text: str) -> None:
    assert redact(redact(text)) == redact(text)


def test_a_label_may_have_its_value_a_line_below() -> None:
    assert redact("The password:\nhunter22\nrest stays") == "The password:\n***\nrest stays"


def test_a_secret_is_found_between_harmless_lines() -> None:
    lines = ["a keyboard", "api_key=abcdef99", "monkey wrench"]
    assert redact("\n".join(lines)) == "a keyboard\napi_key=***\nmonkey wrench"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        pytest.param(f"a\n{KEY}\nMIIE\nabcd\n{END}\nb", f"a\n{KEY}\n…\n…\n{END}\nb", id="each line of a key"),
        pytest.param(f"{KEY}\nProc-Type: 4\n\nMIIE\n{END}", f"{KEY}\n…\n\n…\n{END}", id="its head and blank lines"),
        pytest.param(f"k: {KEY}MIIE{END} b", f"k: {KEY}…{END} b", id="on one line"),
        pytest.param(f"{KEY}MIIE\nab{END}", f"{KEY}…\n…{END}", id="between others' words"),
        pytest.param(f"- {KEY}\n  MIIE\n  abcd\n", f"- {KEY}\n…\n…\n", id="one that never ends"),
        pytest.param(
            f"It begins with {KEY}\n- The port is 80.\n", f"It begins with {KEY}\n- The port is 80.\n", id="named"
        ),
        pytest.param(
            f"It begins with {KEY}\n- The port is 80.\n{KEY}\nMIIE\n{END}\nx",
            f"It begins with {KEY}\n- The port is 80.\n{KEY}\n…\n{END}\nx",
            id="named before a key",
        ),
        pytest.param(
            f"{KEY}\nMIIE\n{END} {KEY}\nabcd\n{END}", f"{KEY}\n…\n{END} {KEY}\n…\n{END}", id="one behind another"
        ),
        pytest.param(
            f"password: hunter22{KEY}MIIE{END}", f"password: ***{KEY}…{END}", id="a value that runs into a key's mark"
        ),
        pytest.param(f"{KEY}\nMIIE{KEY}\nabcd", f"{KEY}\n…{KEY}\n…", id="one that never ends before another"),
    ],
)
def test_in_a_whole_file_a_key_is_masked_line_by_line(text: str, masked: str) -> None:
    assert redact(text, keep_lines=True) == masked
    assert redact(masked, keep_lines=True) == masked


@given(
    st.lists(st.sampled_from([KEY, END, "MIIE", "\n", " ", "The port is 80.", "password: hunter22", "- "]), max_size=30)
)
def test_in_a_whole_file_no_line_is_lost_and_no_key_line_shows(parts: list[str]) -> None:
    text = "".join(parts)
    masked = redact(text, keep_lines=True)
    assert masked.count("\n") == text.count("\n")
    assert redact(masked, keep_lines=True) == masked
    assert f"{KEY}MIIE" not in masked
    lines = masked.split("\n")
    below = [line.partition(KEY)[0] for above, line in pairwise(lines) if above.endswith(KEY)]
    assert [line for line in below if re.fullmatch(r" *(MIIE)+ *", line)] == []


def test_many_keys_that_never_end_cost_linear_time() -> None:
    assert redact(f"{KEY}\nx y\n" * 20_000, keep_lines=True).count(KEY) == 20_000
