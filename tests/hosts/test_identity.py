"""Who a request's headers say it comes from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.hosts.identity import (
    CHANNEL_HEADER,
    MAX_VALUE,
    PROJECTS_HEADER,
    SENDER_HEADER,
    SESSION_HEADER,
    BadCallerError,
    Caller,
    caller_of,
)

MAIN, GROUP = "agent:main:main", "agent:main:telegram:group:7"
OWNER = Caller(MAIN, "owner", "home", ("git.example/team/tool",))
LONG = "9" * (MAX_VALUE + 1)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({SESSION_HEADER: ""}, id="an empty session is not the default's"),
        pytest.param({SESSION_HEADER: " \t"}, id="a blank session is not the default's"),
        pytest.param({SESSION_HEADER: f"{GROUP}{LONG}"}, id="a group with an endless id is not the owner's session"),
        pytest.param({SENDER_HEADER: ""}, id="an empty sender is not the default's"),
        pytest.param({SENDER_HEADER: LONG}, id="an endless sender is not the default's"),
        pytest.param({SESSION_HEADER: GROUP, SENDER_HEADER: LONG}, id="nor in another session"),
        pytest.param({CHANNEL_HEADER: LONG}, id="an endless channel is not the default's"),
        pytest.param({PROJECTS_HEADER: f"git.example/a;{LONG}"}, id="an endless project is not dropped in silence"),
    ],
)
def test_a_header_that_can_not_be_taken_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(BadCallerError, match="header x-dreamline"):
        caller_of(headers, OWNER)


@pytest.mark.parametrize(
    ("headers", "caller"),
    [
        pytest.param({}, OWNER, id="no header: the default"),
        pytest.param({SESSION_HEADER: MAIN}, OWNER, id="the default's own session keeps its sender"),
        pytest.param({SESSION_HEADER: GROUP}, Caller(GROUP), id="another session takes nothing else"),
        pytest.param({SENDER_HEADER: "eve"}, Caller(MAIN, "eve", "home", OWNER.projects), id="another sender"),
        pytest.param({CHANNEL_HEADER: ""}, Caller(MAIN, "owner", None, OWNER.projects), id="an empty channel is none"),
        pytest.param({PROJECTS_HEADER: " ; "}, Caller(MAIN, "owner", "home"), id="an empty list is no project"),
        pytest.param(
            {PROJECTS_HEADER: " a ;b"},
            Caller(MAIN, "owner", "home", ("a", "b")),
            id="projects are joined by semicolons",
        ),
    ],
)
def test_only_a_missing_header_means_the_default(headers: dict[str, str], caller: Caller) -> None:
    assert caller_of(headers, OWNER) == caller


def test_the_length_of_a_project_key_is_bounded_and_not_that_of_the_list() -> None:
    keys = tuple(f"git.example/{'team/' * 20}tool{number}" for number in range(8))
    assert caller_of({PROJECTS_HEADER: ";".join(keys)}, Caller()).projects == keys


@given(st.text(max_size=2 * MAX_VALUE), st.text(max_size=2 * MAX_VALUE))
def test_nothing_of_the_default_is_kept_where_a_header_stands(session: str, sender: str) -> None:
    try:
        caller = caller_of({SESSION_HEADER: session, SENDER_HEADER: sender}, OWNER)
    except BadCallerError:
        return
    assert (caller.session_key, caller.sender) == (session.strip(), sender.strip())
