"""Hygiene: each refusal with its reason; the worked table of the contamination filter."""

import json
from pathlib import Path

import pytest

from recall_runtime.notes.blocks import read_note
from recall_runtime.notes.hygiene import contaminated, refusal_of
from recall_runtime.notes.statements import statements_of
from recall_runtime.text.redaction import redact
from recall_runtime.vocabulary import Refusal

CASES = Path(__file__).parent.parent / "cases"
JUNK = json.loads((CASES / "22-junk-candidates/expected.json").read_text(encoding="utf-8"))


def _verdicts(path: Path) -> dict[int, list[Refusal | None]]:
    note = read_note(path.read_bytes(), path="memory/2026-03-17.md")
    found: dict[int, list[Refusal | None]] = {}
    for block in note.blocks:
        if block.refusal:
            found.setdefault(block.start_line, []).append(block.refusal)
            continue
        text = redact(block.text)
        for statement in statements_of(text, block=block.kind, start_line=block.start_line, end_line=block.end_line):
            found.setdefault(statement.start_line, []).append(statement.refusal)
    return found


VERDICTS = _verdicts(CASES / "22-junk-candidates/memory/2026-03-17.md")


@pytest.mark.parametrize("line", JUNK["promote"])
def test_the_four_facts_of_case_22_are_fit(line: int) -> None:
    assert VERDICTS[line] == [None]


@pytest.mark.parametrize("line", sorted(set(VERDICTS) - set(JUNK["promote"])))
def test_every_other_line_of_case_22_has_a_reason(line: int) -> None:
    assert VERDICTS[line]
    assert None not in VERDICTS[line]


def test_no_line_of_case_22_is_unaccounted_for() -> None:
    lines = (CASES / "22-junk-candidates/memory/2026-03-17.md").read_text(encoding="utf-8").split("\n")
    assert set(VERDICTS) == {number for number, text in enumerate(lines, start=1) if text.strip()}


def test_an_entry_of_nothing_but_a_placeholder_is_refused() -> None:
    verdicts = _verdicts(CASES / "23-secrets/memory/2026-03-18.md")
    assert verdicts[4] == [Refusal.SECRET_ONLY]
    assert verdicts[5] == [None]


def test_no_fact_with_a_replacement_sign_is_fit() -> None:
    verdicts = _verdicts(CASES / "12-invalid-utf8/memory/2026-03-07.md")
    assert {verdicts[line][0] for line in (3, 4, 5)} == {Refusal.UNDECODABLE}
    assert verdicts[6] == [None]


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", Refusal.EMPTY),
        ("## Next steps", Refusal.HEADING),
        ("---", Refusal.RULE_LINE),
        ("The lamp is on [score=0.77 recalls=0 avg=0.1]", Refusal.OWN_RECORD),
        ("Dreaming ran: staged 30 candidate(s), promoted 0", Refusal.OWN_RECORD),
        ("**Session Key**: agent:main:main", Refusal.SESSION_HEADER),
        ("System: [2026-03-04 07:11:58 GMT+1] Gateway connected.", Refusal.ENVELOPE),
        ("user: deploy tonight", Refusal.ENVELOPE),
        ("Read HEARTBEAT.md, all quiet. HEARTBEAT_OK", Refusal.CONTROL_TOKEN),
        ("<|channel>thought", Refusal.CONTROL_TOKEN),
        ("git push --force-with-lease", Refusal.SHELL_LINE),
        ("2026-03-17T14:10:22Z INFO worker started pid=4411", Refusal.LOG_LINE),
        ('{"type":"message","id":"q1"}', Refusal.LOG_LINE),
        ('File "main.py", line 44, in run', Refusal.DIAGNOSTIC),
        ("The build failed with exit code 137 on runner 3", Refusal.DIAGNOSTIC),
        ("TODO", Refusal.TEMPLATE_SLOT),
        ("Call me <your name here>", Refusal.TEMPLATE_SLOT),
        ("5 items, 3 critical:", Refusal.LABEL_ONLY),
        ("**Open matters**", Refusal.LABEL_ONLY),
        ("https://shop.example/item/5521", Refusal.FRAGMENT),
        ("See above.", Refusal.FRAGMENT),
        ("Shall we move the pump?", Refusal.QUESTION),
        ("Prüfen, ob 10406 noch gebraucht wird (?)", Refusal.QUESTION),
        ("[P] 13:00-14:00 dentist (number 14801)", Refusal.PLAN),
        ("Remind me on Friday at 09:00 to renew it.", Refusal.PLAN),
        ("Paused the refactor, will pick up tomorrow.", Refusal.PLAN),
        ("Waiting for Lan to send the slides.", Refusal.PLAN),
        ("Warte noch auf die Folien von Lan.", Refusal.PLAN),
        ("还在等小李回复邮件。", Refusal.PLAN),
        ("Cron job `daily-digest` finished in 44 s, 0 changes.", Refusal.ROUTINE),
        ("心跳检查（21:08）：一切正常。", Refusal.ROUTINE),
        ("disk 61% | mem 812 MB | load 0.31", Refusal.ROUTINE),
        ("password: ***", Refusal.SECRET_ONLY),
        ("The caf\ufffd shuts at four.", Refusal.UNDECODABLE),
        ("Oak.", Refusal.TOO_SHORT),
        ("Oberpunkt", Refusal.TOO_SHORT),  # a single word, however long
        ("Подпункт", Refusal.TOO_SHORT),
        ("The lamp " * 400, Refusal.TOO_LONG),
        ("(recalled) The port of the lamp is 5432.", Refusal.ECHO),
    ],
)
def test_each_refusal_has_its_shape(text: str, refusal: Refusal) -> None:
    assert refusal_of(text) is refusal


@pytest.mark.parametrize(
    "text",
    [
        "Waiting for the lock takes 30 s at most.",
        "Copper pipes in the north wall freeze below minus six.",
        "the greenhouse controller answers on port 20871 since the swap, keep that",
        "Lesson: it must not touch folder 12602, that one is the only copy.",
        "cron runs the tide job on port 5432 from now on",
        "willowloom builds fail without --shards=37112.",
        "[A] 09:05-10:40 校準完成，偏差 14802 ppm → 下次用新探頭",
        "换静音泵（供应商电话 64202）",
        "make sure the pump is drained before winter",
        "Candidate: we hired Ana for the harbour desk",
    ],
)
def test_facts_that_look_like_junk_stay(text: str) -> None:
    assert refusal_of(text) is None


@pytest.mark.parametrize(
    ("snippet", "strict", "with_transcripts"),
    [
        ("Gateway binds to loopback.", False, False),
        ("Build failed with exit code 137 on runner 3", True, True),
        ("Always use exit code 2 for usage errors", False, False),
        ("User: please deploy tonight", True, False),
        ("api_key=abc123xyz must be rotated", True, True),
        ("Prefer ghp_abcdefghijklmnopqrstuvwxyz for CI", True, True),
        ("Deploy at 2026-04-01T10:00:00Z finished", True, True),
        ("Copied the output to /tmp/run1/", True, True),
        (
            "- Candidate: x - confidence: 0.62 - evidence: memory/2026-04-01.md:1-2 - recalls: 3 - status: staged",
            True,
            True,
        ),
        ("Candidate: we hired Ana", False, False),
        ("password: ***", False, False),
        ("", False, False),
    ],
)
def test_the_worked_table_of_contamination(snippet: str, strict: bool, with_transcripts: bool) -> None:
    assert contaminated(snippet) is strict
    assert contaminated(snippet, transcript_form_allowed=True) is with_transcripts
