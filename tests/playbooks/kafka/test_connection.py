"""The connection itself: versions, order, gates, limits, the end."""

from pathlib import Path

import pytest

from interlog.faces.kafka.api.index import SERVED, TELEMETRY
from interlog.faces.kafka.connection import MOST_WAITING
from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema.api_versions import ApiVersionsRequest
from tests.playbooks.kafka.play import Client, Play, frame, playing

ASK = ApiVersionsRequest(client_software_name="play", client_software_version="1.0")


@pytest.mark.parametrize("version", range(5))
def test_api_versions_tells_what_is_served(client: Client, version: int) -> None:
    answer = client.ask(ASK, version) if version >= 3 else client.ask(ApiVersionsRequest(), version)
    assert answer.error_code == 0
    told = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
    served = {key: (one.versions[0], one.versions[-1]) for key, one in SERVED.items()}
    assert told == {key: versions for key, versions in served.items() if key not in TELEMETRY}


def test_calls_for_metrics_are_offered_where_they_are_wanted(tmp_path: Path) -> None:
    for play in playing(tmp_path / "open", telemetry=True):
        assert {one.api_key for one in play.connect().ask(ASK, 4).api_keys} == set(SERVED)


@pytest.mark.parametrize("version", [5, 99, 0x7FFF])
def test_an_unknown_version_of_api_versions_is_answered_in_version_0(client: Client, version: int) -> None:
    client.send_bytes(18, version, b"\x05play\x041.0\0")
    (answer,) = client.listen()
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(one.api_key, one.min_version, one.max_version) for one in answer.api_keys] == [(18, 0, 4)]
    assert client.ask(ASK, 4).error_code == 0


@pytest.mark.parametrize(("name", "software"), [("", "1"), ("a b", "1"), ("-a", "1"), ("a", ""), ("a", "1.")])
def test_odd_names_of_software_are_refused(client: Client, name: str, software: str) -> None:
    answer = client.ask(ApiVersionsRequest(client_software_name=name, client_software_version=software), 3)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(("key", "version"), [(18, -1), (999, 0), (-1, 0), (3, 99), (0, -1), (7, 0)])
def test_an_unknown_api_or_version_ends_the_connection(play: Play, client: Client, key: int, version: int) -> None:
    other = play.connect()
    client.send_bytes(key & 0xFFFF, version, bytes(20), answered=False)
    if (key, version) == (18, -1):
        client._asked.append((client.correlation, 18, 0))
        assert client.listen()[0].error_code == ErrorCode.UNSUPPORTED_VERSION
    else:
        client.refused()
    assert other.ask(ASK, 4).error_code == 0


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"\0\0\0\0",
        b"\0\0\0\x04\0\x12\0\x03",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
        frame(18, 3, 1, b"\x05pl"),
        frame(18, 3, 1, b"\xff\xff\xff\xff\x7f"),
    ],
)
def test_what_is_no_request_ends_the_connection(play: Play, client: Client, data: bytes) -> None:
    other = play.connect()
    client.feed(data)
    client.refused()
    assert other.ask(ASK, 4).error_code == 0


def test_requests_before_a_bad_one_are_answered(client: Client) -> None:
    client.send(ASK, 4)
    client.feed(frame(999, 0, 9, b""))
    assert len(client.listen()) == 1
    assert client.hung_up


@pytest.mark.parametrize("cut", range(1, 12))
def test_requests_come_in_any_pieces(client: Client, cut: int) -> None:
    data = b"".join(frame(18, 0, number, b"") for number in range(1, 6))
    client._asked.extend((number, 18, 0) for number in range(1, 6))
    for at in range(0, len(data), cut):
        client.feed(data[at : at + cut])
    assert len(client.listen()) == 5


def test_half_a_request_and_silence(play: Play, client: Client) -> None:
    idle = play.connect()
    client.feed(frame(18, 0, 1, b"")[:9])
    play.advance(59_000)
    assert not client.hung_up
    play.advance(2_000)
    assert client.hung_up
    assert not idle.hung_up


def test_an_idle_connection_is_closed(play: Play, client: Client) -> None:
    play.advance(300_000)
    assert client.ask(ASK, 4).error_code == 0
    play.advance(599_000)
    assert not client.hung_up
    play.advance(2_000)
    assert client.hung_up


def test_a_client_that_never_reads_is_not_read_either(play: Play, client: Client) -> None:
    client.face.pause()
    client.send(ASK, 4)
    assert client.face.holding
    client.send(ASK, 4)
    client.silence()
    client.face.resume()
    assert len(client.listen()) == 2
    assert not client.face.holding
    client.face.pause()
    client.send(ASK, 4)
    client.listen()
    play.advance(601_000)
    assert client.hung_up


def test_answers_wait_for_those_before_them(play: Play, client: Client) -> None:
    taken = []
    send = client.face.send
    client.face.send = lambda request, parts: taken.append((request, parts))  # type: ignore[method-assign]
    for _ in range(3):
        client.send(ASK, 4)
    client.face.send = send  # type: ignore[method-assign]
    for request, parts in reversed(taken):
        assert client.listen() == []
        send(request, parts)
    assert len(client.listen()) == 3


def test_requests_that_wait_are_bounded(play: Play, client: Client) -> None:
    taken = []
    send = client.face.send
    client.face.send = lambda request, parts: taken.append((request, parts))  # type: ignore[method-assign]
    for _ in range(MOST_WAITING + 10):
        client.send(ASK, 4)
    assert len(taken) == MOST_WAITING
    assert client.face.holding
    client.face.send = send  # type: ignore[method-assign]
    for request, parts in taken:
        send(request, parts)
    assert len(client.listen()) == MOST_WAITING + 10
    assert not client.face.holding


def test_a_muted_connection_is_read_again(play: Play, client: Client) -> None:
    client.face.mute(500)
    client.send(ASK, 4)
    client.send(ASK, 4)
    play.advance(499)
    client.silence()
    play.advance(1)
    assert len(client.listen()) == 2


def test_who_must_log_in_may_ask_for_nothing_before(tmp_path: Path) -> None:
    play = Play(tmp_path / "data", authentication=True)
    client = play.connect()
    assert client.ask(ASK, 4).error_code == 0
    client.send_bytes(18, 0, bytes(600_000), answered=False)
    client.refused()
    slow = play.connect()
    play.advance(31_000)
    assert slow.hung_up
    play.close()


def test_the_end_of_input_ends_it(client: Client) -> None:
    client.send(ASK, 4)
    client.feed(b"")
    assert len(client.listen()) == 1
    assert client.hung_up


def test_a_stop_ends_it(play: Play, client: Client) -> None:
    client.face.shut_down()
    client.refused()
