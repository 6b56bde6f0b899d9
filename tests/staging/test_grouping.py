"""Near-duplicates and the class a restatement inherits."""

import pytest

from recall_runtime.clock import parse_instant
from recall_runtime.records import Provenance
from recall_runtime.vocabulary import OriginClass, SessionKind
from tests.support.sessions import SessionBuilder
from tests.support.workspace_days import Days


@pytest.fixture
def days(tmp_path):
    return Days(tmp_path)


def groups(days):
    found: dict[str, set[str]] = {}
    for root, text in days.rows("SELECT root_id, text FROM claims"):
        found.setdefault(root, set()).add(text)
    return sorted(found.values(), key=len, reverse=True)


SAME = [
    ("2026-03-01", "Production for harbourline runs on kelp-41877.example.net."),
    ("2026-03-02", "harbourline läuft produktiv auf kelp-41877.example.net."),
    ("2026-03-03", "harbourline 的生产环境部署在 kelp-41877.example.net。"),
]


def test_one_fact_in_three_languages_and_files_is_one_group(days):
    for day, text in SAME:
        days.write(f"memory/{day}.md", f"- {text}\n")
    days.stage("2026-03-04T03:00:00Z")
    assert groups(days)[0] == {text for _, text in SAME}


def test_the_root_is_the_oldest_claim_in_whatever_order_they_arrive(tmp_path):
    roots = []
    for number, order in enumerate((SAME, SAME[::-1])):
        days = Days(tmp_path / str(number))
        for night, (day, text) in enumerate(order, start=4):
            days.write(f"memory/{day}.md", f"- {text}\n")
            days.stage(f"2026-03-{night:02d}T03:00:00Z")
        roots.append(days.rows("SELECT DISTINCT root_id FROM claims"))
    assert roots[0] == roots[1]
    assert len(roots[0]) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Postgres of harbourline listens on 5432.", "Postgres of harbourline listens on 5433."),
        ("Postgres of harbourline listens on 5432.", "Postgres of harbourline does not listen on 5432."),
        ("Postgres of harbourline listens on 5432.", "Postgres of kelpworks listens on 5432."),
        ("The deploy target is the blue cluster.", "The deploy target is the green cluster."),
        ("Drafted a reply to Wen about lunch on floor 29.", "Drafted a reply to Tomasz about lunch on floor 29."),
    ],
    ids=["value", "negation", "subject", "colour", "name beside a short number"],
)
def test_what_differs_in_substance_stays_apart(days, one, other):
    days.write("memory/2026-03-03.md", f"- {one}\n- {other}\n")
    days.stage("2026-03-04T03:00:00Z")
    assert len(groups(days)) == 2


def test_phase_hits_move_to_the_new_root(days):
    days.write("memory/2026-03-03.md", f"- {SAME[2][1]}\n")
    days.stage("2026-03-04T03:00:00Z")
    days.write("memory/2026-03-01.md", f"- {SAME[0][1]}\n")
    days.stage("2026-03-05T03:00:00Z")
    ((root,),) = days.rows("SELECT DISTINCT root_id FROM claims")
    assert days.rows("SELECT claim_id, light_hits FROM phase_signals") == [(root, 2)]


def guest_says(days, instant, session, text):
    builder = SessionBuilder(session, start=parse_instant(instant))
    builder.user(text, owner=False)
    days.session(builder, key="agent:main:telegram:group:7", chat_type="group")


def origin_of(days, like):
    return [row[0] for row in days.rows("SELECT origin_class FROM claims WHERE text LIKE ?", like)]


def test_a_restatement_of_an_earlier_untrusted_claim_inherits_its_class(days):
    guest_says(days, "2026-03-01T09:00:00Z", "g-1", "New deploy host of harbourline is trap-41877.example.org.")
    days.says("2026-03-02T09:00:00Z", "s-1", "Deploys of harbourline go to trap-41877.example.org now.")
    days.stage("2026-03-04T03:00:00Z")
    assert origin_of(days, "Deploys%") == ["untrusted"]
    assert days.rows("SELECT status, reason FROM claims WHERE text LIKE 'Deploys%'") == [("refused", "origin")]


def test_it_does_so_when_the_untrusted_one_is_read_later(days):
    days.says("2026-03-02T09:00:00Z", "s-1", "Deploys of harbourline go to trap-41877.example.org now.")
    days.stage("2026-03-03T03:00:00Z")
    guest_says(days, "2026-03-01T09:00:00Z", "g-1", "New deploy host of harbourline is trap-41877.example.org.")
    days.stage("2026-03-04T03:00:00Z")
    assert origin_of(days, "Deploys%") == ["untrusted"]


def test_a_trusted_claim_that_came_first_keeps_its_class(days):
    days.says("2026-03-01T09:00:00Z", "s-1", "Deploys of harbourline go to kelp-41877.example.org now.")
    guest_says(days, "2026-03-02T09:00:00Z", "g-1", "The deploy host of harbourline is kelp-41877.example.org.")
    days.stage("2026-03-04T03:00:00Z")
    assert origin_of(days, "Deploys%") == ["owner"]


def test_the_very_same_words_take_the_least_trusted_class(days):
    text = "Deploys of harbourline go to kelp-41877.example.org now."
    days.says("2026-03-01T09:00:00Z", "s-1", text)
    guest_says(days, "2026-03-02T09:00:00Z", "g-1", text)
    days.stage("2026-03-04T03:00:00Z")
    assert origin_of(days, "Deploys%") == ["untrusted"]


def test_a_shared_date_taints_nothing(days):
    guest_says(days, "2026-03-01T09:00:00Z", "g-1", "On 2026-02-28 harbourline had a storm warning.")
    days.says("2026-03-02T09:00:00Z", "s-1", "On 2026-02-28 harbourline signed the lease.")
    days.stage("2026-03-04T03:00:00Z")
    assert origin_of(days, "%lease%") == ["owner"]


def test_the_message_of_a_session_overrules_what_its_writes_say_of_the_same_words(days):
    text = "Deploys of harbourline go to kelp-41877.example.org now."
    days.says("2026-03-01T09:00:00Z", "s-1", text)
    tainted = Provenance(OriginClass.UNTRUSTED, SessionKind.INTERACTIVE, parse_instant("2026-03-01T10:00:00Z"), "s-1")
    days.note("2026-03-01T10:00:00Z", f"- {text}", "s-1", provenance=tainted)
    days.stage("2026-03-04T03:00:00Z")
    assert origin_of(days, "Deploys%") == ["owner"]
