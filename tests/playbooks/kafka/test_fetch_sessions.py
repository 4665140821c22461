"""Fetch sessions: what a client reads is said once; afterwards only what changes, by both sides."""

from collections.abc import Sequence
from typing import Any

import pytest

from interlog.faces.kafka import fetch_sessions
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema import fetch as f
from interlog.journal import batch as batches
from interlog.journal.record import Record
from tests.playbooks.kafka import admin_play as a
from tests.playbooks.kafka.play import Client, Play

MOST = (1 << 31) - 1
Part = tuple[int, int]  # partition and offset
OLD, NEW = 12, 13  # with names, with ids


@pytest.fixture(autouse=True)
def topics(client: Client) -> None:
    assert a.create(client, "t", 3).error_code == 0


def named(play: Play, version: int) -> dict[str, Any]:
    return {"topic_id": play.service.topic_id(play.core.catalog.topic("/", "t"))} if version >= NEW else {"topic": "t"}


def ask(
    play: Play,
    client: Client,
    id: int,
    epoch: int,
    *parts: Part,
    version: int = OLD,
    forgotten: Sequence[int] = (),
    **more: Any,
) -> Any:
    name = named(play, version)
    partitions = [f.FetchPartition(index, fetch_offset=at, partition_max_bytes=MOST) for index, at in parts]
    topics = [f.FetchTopic(**name, partitions=partitions)] if parts else []
    gone = [f.ForgottenTopic(**name, partitions=list(forgotten))] if forgotten else []
    request = f.FetchRequest(session_id=id, session_epoch=epoch, topics=topics, forgotten_topics_data=gone, **more)
    return client.ask(request, version)


def told(answer: Any) -> dict[int, list[bytes | None]]:
    """What came of each partition that is in the answer."""
    assert answer.error_code == 0
    found = {}
    for topic in answer.responses:
        for one in topic.partitions:
            assert one.error_code == 0
            data = bytes(one.records or b"")
            records = [record for at, _ in batches.batches(data) for _, record in batches.decode(data, at)]
            found[one.partition_index] = [record.value for record in records]
    return found


def put(client: Client, value: bytes, index: int = 0) -> None:
    assert a.send(client, [Record(b"k", value, (), 1_700_000_000_000)], index=index).error_code == 0


@pytest.mark.parametrize("version", [7, 11, 12, 13, 18])
def test_what_is_read_is_said_once(play: Play, client: Client, version: int) -> None:
    put(client, b"1")
    first = ask(play, client, 0, 0, (0, 0), (1, 0), (2, 0), version=version)
    assert told(first) == {0: [b"1"], 1: [], 2: []}
    id = first.session_id
    assert id > 0
    # Nothing is new of what gave nothing; what gave something is still where it was.
    again = ask(play, client, id, 1, version=version)
    assert again.session_id == id
    assert told(again) == {0: [b"1"]}
    assert told(ask(play, client, id, 2, (0, 1), version=version)) == {}
    put(client, b"2", 2)
    assert told(ask(play, client, id, 3, version=version)) == {2: [b"2"]}
    assert told(ask(play, client, id, 4, (2, 1), forgotten=[0], version=version)) == {}
    put(client, b"3", 0)
    assert told(ask(play, client, id, 5, version=version)) == {}
    assert told(ask(play, client, id, 6, (0, 1), version=version)) == {0: [b"3"]}


def test_what_gave_something_comes_last(play: Play, client: Client) -> None:
    for index in range(3):
        put(client, b"x" * 100, index)
    id = ask(play, client, 0, 0, (0, 0), (1, 0), (2, 0), max_bytes=1).session_id
    given = [next(iter(told(ask(play, client, id, epoch, max_bytes=1)))) for epoch in (1, 2, 3, 4)]
    assert given == [1, 2, 0, 1]


def test_news_without_batches(play: Play, client: Client) -> None:
    """A log that begins later, or ends later than what is stable."""
    put(client, b"1")
    put(client, b"2")
    id = ask(play, client, 0, 0, (0, 2)).session_id
    assert told(ask(play, client, id, 1)) == {}
    play.core.topic("/", "t").delete_records(0, 1)
    play.turn()
    answer = ask(play, client, id, 2)
    assert told(answer) == {0: []}
    assert answer.responses[0].partitions[0].log_start_offset == 1


def test_errors_are_told_each_time(play: Play, client: Client) -> None:
    id = ask(play, client, 0, 0, (0, 0), (7, 0)).session_id
    for epoch in (1, 2):
        answer = ask(play, client, id, epoch, max_wait_ms=10_000, min_bytes=1)
        (found,) = answer.responses[0].partitions
        assert (found.partition_index, found.error_code) == (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_wait_in_a_session(play: Play, client: Client) -> None:
    id = ask(play, client, 0, 0, (0, 0), (1, 0)).session_id
    client.send(f.FetchRequest(max_wait_ms=500, min_bytes=1, session_id=id, session_epoch=1), OLD)
    client.silence()
    put(play.connect(), b"1", 1)
    (answer,) = client.listen()
    assert told(answer) == {1: [b"1"]}
    client.send(f.FetchRequest(max_wait_ms=500, min_bytes=1_000, session_id=id, session_epoch=2), OLD)
    play.advance(500)
    (answer,) = client.listen()
    assert told(answer) == {1: [b"1"]}


def test_who_wants_no_session(play: Play, client: Client) -> None:
    put(client, b"1")
    answer = ask(play, client, 0, -1, (0, 0))
    assert (told(answer), answer.session_id) == ({0: [b"1"]}, 0)
    id = ask(play, client, 0, 0, (0, 0)).session_id
    answer = ask(play, client, id, -1, (0, 0))
    assert (told(answer), answer.session_id) == ({0: [b"1"]}, 0)
    assert ask(play, client, id, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_sessions_that_cannot_go_on(play: Play, client: Client) -> None:
    id = ask(play, client, 0, 0, (0, 0)).session_id
    unknown, epoch = ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH
    for answer, error in (
        (ask(play, client, id + 1, 1), unknown),
        (ask(play, client, id, 5), epoch),
        (ask(play, client, id, 1, version=NEW), ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ):
        assert (answer.error_code, answer.session_id, answer.responses) == (error, 0, [])
    assert told(ask(play, client, id, 1)) == {}
    # Of another connection of the same user it is the same session.
    assert told(ask(play, play.connect(), id, 2)) == {}
    assert ask(play, client, id, 2).error_code == epoch


def test_one_begun_anew_replaces_the_one_it_names(play: Play, client: Client) -> None:
    id = ask(play, client, 0, 0, (0, 0)).session_id
    other = ask(play, client, id, 0, (0, 0)).session_id
    assert other not in (0, id)
    assert ask(play, client, id, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert told(ask(play, client, other, 1)) == {}
    assert len(play.service.sessions) == 1


def test_there_are_so_many_and_no_more(play: Play, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "MOST_SESSIONS", 2)
    ids = [ask(play, client, 0, 0, (0, 0)).session_id for _ in range(3)]
    assert ids[0] and ids[1]
    assert ids[2] == 0  # it goes on without one
    play.advance(119_000)
    assert told(ask(play, client, ids[0], 1)) == {}
    play.advance(2_000)
    assert ask(play, client, 0, 0, (0, 0)).session_id
    assert ask(play, client, ids[1], 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert told(ask(play, client, ids[0], 2)) == {}


def test_a_start_ends_all_of_them(play: Play, client: Client) -> None:
    id = ask(play, client, 0, 0, (0, 0)).session_id
    play.restart()
    assert ask(play, play.connect(), id, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
