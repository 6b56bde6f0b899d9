"""Lineage keys: what two claims must share to be about one thing."""

from pathlib import Path

import pytest

from recall_runtime.lineage_keys.book import LineageBook, LineageClaim
from recall_runtime.lineage_keys.specifics import specifics_of
from recall_runtime.lineage_keys.stored import assign_keys
from recall_runtime.lineage_keys.succession import corrects, says_no_longer, stands_beside
from recall_runtime.storage.schema import open_state
from tests.support.curated import insert_claim, insert_row

PROJECT = "github.com/example/boathouse"
OTHER = "github.com/example/windmill"


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("Backups land in s3://keep-11206.", ("s#://keep-#",)),
        ("Build it with --shards=4", ("--shards=#",)),
        ("Dead letters come back through jobs.771, not mail.", ("jobs.#",)),
        ("`ff_41` hides the checkout", ("ff_#",)),
        ("Point the hook at /hooks/8812.", ("/hooks/#",)),
        ("Readers must speak schema 12.", ("schema #",)),
        ("Only runner-amber-7 has the cache.", ("runner-*-#",)),
        ("The db listens on port 5433.", ("port #",)),
        ("Postgres is on 5433, not the default port.", ("port #",)),
        ("Die Datenbank hört auf Port 5433.", ("port #",)),
        ("数据库端口是 5433。", ("port #",)),
        ("Call Noor, ext. 441 for invoices.", ("ext #",)),
        ("It is pinned to pnpm 9.12 only.", ("pnpm #.#",)),
        ("Budget cap is 500 EUR.", ("# eur",)),
        ("Budget cap is €500.", ("# eur",)),
        ("The timeout is 30s.", ("# s",)),
        ("Retention is 24 Stunden.", ("# h",)),
        ("保留 24 小时。", ("# h",)),
        ("Six or 6 sheep may graze.", ("#",)),
        ("Production runs on amber-1.example.net.", ("host example.net",)),
        ("The wiki is https://wiki.example.net/start.", ("https://wiki.example.net",)),
        ("Since 2026-03-01 it is schema 12.", ("schema #",)),
        ("We meet at 10:30.", ("clock",)),
        ("No value at all.", ()),
    ],
)
def test_slots_mask_digits_and_keep_what_names_the_value(text: str, slots: tuple[str, ...]) -> None:
    """The shape of each kind of value."""
    assert specifics_of(text).slots == slots


@pytest.mark.parametrize(
    "text", ["Budget is 500 EUR.", "6 sheep graze.", "It runs on a-1.example.net.", "See https://w.example.net/x."]
)
def test_slots_that_any_fact_could_have_are_weak(text: str) -> None:
    """A unit, a count, a host, an address without digits do not say what they are the value of."""
    assert not specifics_of(text).strong


def keys(*claims: tuple[str, str | None]) -> list[str | None]:
    """Keys of claims given as (text, project), in order."""
    book = LineageBook((PROJECT, OTHER))
    return [book.key_of(LineageClaim(f"c{n}", text, project)) for n, (text, project) in enumerate(claims)]


def test_a_given_key_comes_first() -> None:
    """Writer-given keys ignore everything else; spelling of blanks and case does not matter."""
    book = LineageBook()
    first = book.key_of(LineageClaim("a", "The tank leaks.", given_key="Rainwater  Tank"))
    assert (
        first == book.key_of(LineageClaim("b", "Port 12.", "p/q", given_key="rainwater tank")) == "given:rainwater tank"
    )


def test_strong_slots_meet_across_languages_and_wordings() -> None:
    """Paraphrases of one attribute share the key, with and without the annotation."""
    made = keys(
        ("Nightly backups of boathouse land in s3://keep-1.", None),
        ("boathouse 的备份在 s3://keep-2。", None),
        ("Backups are restored from s3://keep-3.", PROJECT),
    )
    assert len(set(made)) == 1
    assert made[0] is not None


def test_the_same_attribute_of_two_projects_never_meets() -> None:
    """The trap: same day, same words, another project."""
    first, second = keys(("boathouse backups: s3://keep-1.", None), ("windmill backups: s3://keep-2.", None))
    assert first != second


def test_different_attributes_of_one_project_never_meet() -> None:
    """Values of different shape, and weak values of different attributes."""
    made = keys(
        ("The boathouse database listens on port 5433.", None),
        ("boathouse data is at schema 12.", None),
        ("Budget cap for boathouse is 500 EUR per quarter.", None),
        ("Hosting of boathouse costs 40 EUR a month.", None),
    )
    assert len(set(made)) == 4


def test_weak_slots_meet_when_the_attribute_words_do() -> None:
    """Most attribute words of the smaller statement are shared."""
    first, second = keys(
        ("Budget cap for boathouse is 500 EUR per quarter.", None), ("boathouse budget cap: 600 EUR per quarter", None)
    )
    assert first == second


def test_a_correction_joins_the_only_weak_lineage_of_its_subject() -> None:
    """`Update:` in other words but one, and nothing else it could mean."""
    first, second, third = keys(
        ("With a timeout under 900 ms, uploads to boathouse drop.", None),
        ("Update: boathouse gateway timeout must be 1200 ms.", None),
        ("The boathouse door bell rings for 800 ms.", None),
    )
    assert first == second
    assert third != first


def test_the_text_names_the_subject_before_the_heading_does() -> None:
    """A line about one project below the heading of another."""
    book = LineageBook((PROJECT, OTHER))
    key = book.key_of(LineageClaim("a", "boathouse logs: /var/log/app/12.log", OTHER))
    assert key is not None
    assert key.startswith(PROJECT)


@pytest.mark.parametrize(
    "text",
    ["The port is 5433.", "Ida wrote the guide.", "a-1 b-2 c-3 d-4 boathouse e5x"],
    ids=["no-subject", "no-value", "too-many-values"],
)
def test_without_subject_or_value_there_is_no_key(text: str) -> None:
    """Such a claim never retires anything."""
    assert keys((text, None)) == [None]


def test_a_person_is_a_subject() -> None:
    """P44: facts about one person with different shapes stay apart, the same shape meets."""
    first, second, third = keys(
        ("Since May, Ida has locker 12.", None),
        ("In June, Ida got locker 14.", None),
        ("In June, Ida wrote guide-7.", None),
    )
    assert first == second
    assert first != third


@pytest.mark.parametrize(
    ("text", "beside"),
    [
        ("boathouse also reads jobs.12.", True),
        ("Additionally, port 12.", True),
        ("另外还有 jobs.12。", True),
        ("The queue is jobs.12.", False),
    ],
)
def test_words_that_put_a_value_beside_another(text: str, beside: bool) -> None:
    """Such a statement retires nothing."""
    assert stands_beside(text) is beside


@pytest.mark.parametrize(
    ("text", "gone"),
    [("Port 12 is no longer open.", True), ("端口 12 不再使用。", True), ("Port 12 is open.", False)],
)
def test_no_longer_is_read_as_such(text: str, gone: bool) -> None:
    """A statement that something has stopped."""
    assert says_no_longer(text) is gone


def test_a_correction_is_told_by_its_lead_alone() -> None:
    """The word elsewhere in the sentence is none."""
    assert corrects("Correction: port 12.")
    assert not corrects("The correction of port 12 took an hour.")


def test_stored_claims_get_their_keys_once_and_meet_older_ones(tmp_path: Path) -> None:
    """Keys are filled in order, given ones brought into form, and weak ones join stored ones of an earlier run."""
    state = open_state(tmp_path / "state.sqlite")

    def add(claim_id: str, text: str, **more: object) -> None:
        insert_claim(state, claim_id, text, **more)

    def stored() -> dict[str, str | None]:
        return dict(state.execute("SELECT claim_id, lineage_key FROM claims"))

    add("a", "boathouse logs: /var/log/app/1.log")  # its project is not known yet
    assign_keys(state)
    assert stored() == {"a": None}
    add("b", "Budget cap for boathouse is 500 EUR per quarter.", project_key=PROJECT)
    add("c", "The tank leaks.", lineage_key="Rain Tank", key_is_given=1)
    assign_keys(state)
    first = stored()
    assert first["a"] == f"{PROJECT}|/var/log/app/#.log|a"
    assert first["c"] == "given:rain tank"
    add("d", "boathouse budget cap: 600 EUR per quarter")
    assign_keys(state)
    second = stored()
    assert second["d"] == second["b"] == f"{PROJECT}|# eur|b"
    assign_keys(state)
    assert stored() == second
    state.close()


def test_a_paraphrase_of_the_group_brings_its_lineage(tmp_path: Path) -> None:
    """The same value said in English and in Japanese joins both to the lineage of the older English value."""
    state = open_state(tmp_path / "state.sqlite")
    more = {"project_key": PROJECT}
    insert_claim(state, "a" * 12, "Set the boathouse timeout to 900 ms; shorter values lost data.", **more)
    insert_claim(state, "b" * 12, "boathouse のタイムアウトは 1200 ms にする。", **more)
    assign_keys(state)
    keys_before = dict(state.execute("SELECT claim_id, lineage_key FROM claims"))
    assert keys_before["a" * 12] != keys_before["b" * 12]
    text = "Set the boathouse timeout to 1200 ms; shorter values lost data."
    insert_claim(state, "c" * 12, text, root_id="b" * 12, **more)
    assign_keys(state)
    assert {key for (key,) in state.execute("SELECT lineage_key FROM claims")} == {f"{PROJECT}|# ms|{'a' * 12}"}
    state.close()


def test_one_wording_of_a_value_that_agrees_is_enough(tmp_path: Path) -> None:
    """Another wording of the same value speaks of a test; the newer value meets the one that does not."""
    state = open_state(tmp_path / "state.sqlite")
    more = {"project_key": PROJECT}
    insert_claim(state, "a" * 12, "boathouse 的测试功能由 ff_41 控制。", **more)
    insert_claim(state, "b" * 12, "New checkout in boathouse hides behind ff_41.", root_id="a" * 12, **more)
    assign_keys(state)
    insert_claim(state, "c" * 12, "New checkout in boathouse hides behind ff_52.", **more)
    assign_keys(state)
    assert {key for (key,) in state.execute("SELECT lineage_key FROM claims")} == {f"{PROJECT}|ff_#|{'a' * 12}"}
    state.close()


def test_an_untrusted_paraphrase_joins_nothing(tmp_path: Path) -> None:
    """A web page can't tie two lineages together."""
    state = open_state(tmp_path / "state.sqlite")
    more = {"project_key": PROJECT}
    insert_claim(state, "a" * 12, "Set the boathouse timeout to 900 ms; shorter values lost data.", **more)
    insert_claim(state, "b" * 12, "boathouse のタイムアウトは 1200 ms にする。", **more)
    text = "Set the boathouse timeout to 1200 ms; shorter values lost data."
    insert_claim(state, "c" * 12, text, root_id="b" * 12, origin_class="untrusted", **more)
    assign_keys(state)
    found = dict(state.execute("SELECT claim_id, lineage_key FROM claims"))
    assert found["a" * 12] != found["b" * 12]
    state.close()


@pytest.mark.parametrize(("origin", "joins"), [("agent", True), ("owner", True), ("untrusted", False)])
def test_any_trusted_place_may_say_that_a_claim_corrects(tmp_path: Path, origin: str, joins: bool) -> None:
    """The session said it plainly and was read first; the note says "Update:"."""
    state = open_state(tmp_path / "state.sqlite")
    more = {"project_key": PROJECT}
    insert_claim(state, "a" * 12, "Uploads to boathouse through the tunnel stop after 900 ms.", **more)
    insert_claim(state, "b" * 12, "Large boathouse uploads break off after 1200 ms.", **more)
    place = {"claim_id": "b" * 12, "path": "memory/2026-03-03.md", "start_line": 3, "end_line": 3, "day": "2026-03-03"}
    place |= {"session_kind": "interactive", "observed_at": 0}
    insert_row(state, "evidence", **place, source="transcript", source_key="1", origin_class="owner")
    insert_row(state, "evidence", **place, source="note", source_key="2", origin_class=origin, correction=1)
    assign_keys(state)
    found = {key for (key,) in state.execute("SELECT lineage_key FROM claims")}
    assert (found == {f"{PROJECT}|# ms|{'a' * 12}"}) is joins
    state.close()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "Confirmed with Ida: the live box for boathouse is amber-1.example.net.",
            "Confirmed with Ida: the live box for windmill is amber-2.example.net.",
        ),
        ("Agreed with Ida, boathouse listens on port 12.", "Agreed with Ida, windmill listens on port 14."),
        ("Agreed with Ida, boathouse takes 12 ms.", "Update: agreed with Ida, windmill takes 14 ms."),
    ],
    ids=["weak", "strong", "correction"],
)
def test_whoever_confirmed_two_facts_does_not_make_them_one(first: str, second: str) -> None:
    """The projects are not known as such: the only proper name is that of the person asked."""
    book = LineageBook()
    assert book.key_of(LineageClaim("a", first)) != book.key_of(LineageClaim("b", second))


def test_a_project_that_becomes_known_takes_the_place_of_a_name_as_subject(tmp_path: Path) -> None:
    """A Latin name inside another script was the subject until an annotation said what it is."""
    state = open_state(tmp_path / "state.sqlite")
    insert_claim(state, "a" * 12, "База boathouse слушает порт 5433.")
    assign_keys(state)
    ((before,),) = state.execute("SELECT lineage_key FROM claims")
    assert str(before).startswith("name:boathouse|")
    insert_claim(state, "b" * 12, "Use port 5434 when connecting to the boathouse db.", project_key=PROJECT)
    assign_keys(state)
    assert {key for (key,) in state.execute("SELECT lineage_key FROM claims")} == {f"{PROJECT}|port #|{'a' * 12}"}
    state.close()


def test_a_group_is_one_lineage_when_its_project_becomes_known(tmp_path: Path) -> None:
    """One wording had a name for subject, the other nothing; the newer value meets both."""
    state = open_state(tmp_path / "state.sqlite")
    insert_claim(state, "a" * 12, "Legal wants boathouse data gone after 51 hours.")
    insert_claim(state, "b" * 12, "Хранение данных boathouse: 51 hours.", root_id="a" * 12)
    assign_keys(state)
    insert_claim(state, "c" * 12, "Legal wants boathouse data gone after 14 hours.", project_key=PROJECT)
    assign_keys(state)
    assert {key for (key,) in state.execute("SELECT lineage_key FROM claims")} == {f"{PROJECT}|# h|{'a' * 12}"}
    state.close()


def test_a_line_said_again_and_again_with_other_numbers_is_one_wording() -> None:
    """A routine of a thousand days costs each later claim one comparison, not a thousand."""
    book = LineageBook((PROJECT,))
    made = {
        book.key_of(LineageClaim(f"{day:012d}", f"The boathouse import takes {day} ms.")) for day in range(1, 1_001)
    }
    assert made == {f"{PROJECT}|# ms|{1:012d}"}
    assert sum(len(peers) for peers in book._peers.values()) == 1
