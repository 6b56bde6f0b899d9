"""Concept tags: the worked rules of openclaw-algorithms 19."""

from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.text.concepts import MAX_TAGS, concept_tags


def test_words_of_other_languages_are_tags_and_their_articles_are_not() -> None:
    tags = concept_tags("memory/x.md", "la configuración du routeur und Sicherung der Überwachung")
    assert {"configuración", "routeur", "sicherung", "überwachung"} <= set(tags)
    assert not {"de", "du", "und", "der", "la"} & set(tags)


def test_a_dated_file_name_is_no_tag() -> None:
    assert concept_tags("memory/2026-04-04.md", "") == ()


def test_short_glossary_words_need_their_boundaries() -> None:
    assert "kv" not in concept_tags("memory/x.md", "the mkv file")
    assert "kv" in concept_tags("memory/x.md", "the kv store")


def test_a_plural_gives_both_glossary_words() -> None:
    assert concept_tags("memory/x.md", "backups")[:2] == ("backup", "backups")


def test_an_annotation_never_becomes_a_tag() -> None:
    tags = concept_tags("memory/x.md", "The shed. <!-- project: github.com/example/house -->")
    assert not any("house" in tag or "github" in tag for tag in tags)


def test_numbers_are_no_tags_and_there_are_at_most_eight() -> None:
    tags = concept_tags("memory/x.md", "12345 alpha bravo charlie delta echo foxtrot golf hotel india juliet")
    assert len(tags) == MAX_TAGS
    assert not any(tag.isdigit() for tag in tags)


def test_chinese_words_are_tags() -> None:
    assert "备份" in concept_tags("memory/x.md", "备份在旧盘")


@given(st.text(max_size=200))
def test_any_text_has_tags_within_bounds(text: str) -> None:
    tags = concept_tags("memory/x.md", text)
    assert len(tags) == len(set(tags)) <= MAX_TAGS
    assert all(2 <= len(tag) <= 32 for tag in tags)


def test_the_name_of_a_transcript_gives_no_tags() -> None:
    """Session files are named by ids; their parts as triggers would fire on nothing anybody says."""
    assert concept_tags("sessions/main/2770d324-e1bf-488c-9a1b-0a1b2c3d4e5f.jsonl", "The kiln") == concept_tags(
        "", "The kiln"
    )
