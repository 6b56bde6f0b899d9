"""Where a request goes: the table of kinds in eight languages, and the words that bring an intent up."""

import pytest

from recall_runtime.remember.routing import RememberedKind, route
from recall_runtime.remember.wording import event_words, flat, without_lead

DIRECTIVE, FACT, INTENT = RememberedKind.DIRECTIVE, RememberedKind.FACT, RememberedKind.INTENT
TASK, ASPIRATION, DETAIL = RememberedKind.TASK, RememberedKind.ASPIRATION, RememberedKind.DETAIL

TABLE = [
    # English
    ("Remember that the server stands in room 12.", FACT),
    ("Remember: the release train leaves every Thursday from main", FACT),
    ("Please remember that I prefer window seats.", DIRECTIVE),
    ("From now on give prices in euro.", DIRECTIVE),
    ("When the boiler comes up, remind me to ask about the warranty.", INTENT),
    ("Remind me on Friday at 5pm to call Robin.", TASK),
    ("remember to water the plants tomorrow", TASK),
    ("Some day I want to learn the cello.", ASPIRATION),
    ("Still waiting for the invoice from the printer today.", DETAIL),
    ("Just for this trip, use the window seat.", DETAIL),
    # German
    ("Merk dir, dass der Server in Raum 12 steht.", FACT),
    ("Antworte ab jetzt auf Deutsch.", DIRECTIVE),
    ("Wenn die Heizung zur Sprache kommt, erinnere mich an die Garantie.", INTENT),
    ("Erinnere mich morgen um 9 an den Anruf.", TASK),
    ("Irgendwann möchte ich Cello lernen.", ASPIRATION),
    ("Heute warte ich noch auf die Rechnung der Druckerei.", DETAIL),
    # Spanish
    ("Recuerda que el servidor está en la sala 12.", FACT),
    ("Siempre responde en español.", DIRECTIVE),
    ("Cuando se hable de la caldera, recuérdame la garantía.", INTENT),
    ("Recuérdame mañana a las 9 llamar a Robin.", TASK),
    # French
    ("Souviens-toi que le serveur est dans la salle 12.", FACT),
    ("Toujours répondre en français.", DIRECTIVE),
    ("Quand on parle de la chaudière, rappelle-moi la garantie.", INTENT),
    ("Rappelle-moi demain à 9 heures d'appeler Robin.", TASK),
    # Portuguese
    ("Lembra-te que o servidor está na sala 12.", FACT),
    ("Quando falarmos da caldeira, lembra-me da garantia.", INTENT),
    ("Lembra-me amanhã às 9 de ligar ao Robin.", TASK),
    # Russian
    ("Запомни, что сервер стоит в комнате 12.", FACT),
    ("Всегда отвечай по-русски.", DIRECTIVE),
    ("Когда зайдет речь о котле, напомни мне про гарантию.", INTENT),
    ("Напомни мне завтра в 9 позвонить Робину.", TASK),
    # Chinese
    ("记住，服务器在3号房间。", FACT),
    ("以后请总是用中文回答。", DIRECTIVE),
    ("下次提到锅炉的时候，提醒我问保修。", INTENT),
    ("明天早上9点提醒我打电话。", TASK),
    # Japanese
    ("サーバーは3号室にあることを覚えておいて。", FACT),
    ("必ず日本語で答えて。", DIRECTIVE),
    ("ボイラーの話が出たら、保証について聞いてと言って。", INTENT),
    ("明日9時に電話を思い出させて。", TASK),
]


@pytest.mark.parametrize(("text", "kind"), TABLE, ids=[f"{kind}: {text[:40]}" for text, kind in TABLE])
def test_a_request_is_routed_by_its_kind(text: str, kind: RememberedKind) -> None:
    assert route(text, ()).kind is kind


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("Please remember that the key hangs left.", "The key hangs left."),
        ("Don't forget that the key hangs left.", "The key hangs left."),
        ("Vergiss nicht, dass der Schlüssel links hängt.", "Der Schlüssel links hängt."),
        ("记住：钥匙在左边。", "钥匙在左边。"),
        ("鍵は左にあることを覚えておいて", "鍵は左にある"),
        ("The note about Otto is old.", "The note about Otto is old."),
    ],
)
def test_the_request_is_cut_from_what_is_asked_for(text: str, bare: str) -> None:
    assert without_lead(text) == bare


@pytest.mark.parametrize(
    ("text", "keywords"),
    [
        ("When the boiler comes up, remind me to ask about the warranty.", ("boiler",)),
        ("Next time we talk about the trip to Porto, mention the tram.", ("trip porto",)),
        ("Remind me of the warranty when someone mentions the boiler.", ("boiler",)),
        ("Wenn die Heizung zur Sprache kommt, erinnere mich an die Garantie.", ("heizung",)),
        ("下次提到锅炉的时候，提醒我问保修。", ("锅炉",)),
        ("ボイラーの話が出たら、保証について聞いてと言って。", ("ボイラー",)),
        ("The boiler is old.", ()),
    ],
)
def test_an_event_is_named_by_the_words_of_its_condition(text: str, keywords: tuple[str, ...]) -> None:
    assert event_words(text) == keywords


def test_many_words_of_an_event_are_asked_for_in_pairs() -> None:
    found = event_words("When the roof repair offer from Otto arrives in Porto, tell me.")
    assert len(found) > 1
    assert all(len(entry.split()) == 2 for entry in found)


def test_a_text_can_open_neither_a_comment_nor_a_list() -> None:
    assert flat("- # one <!-- two --> \n three") == "one two three"
