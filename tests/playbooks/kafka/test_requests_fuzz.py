"""Requests that say anything at all: answered in Kafka's words or with the end of the connection and nothing else, in
bounded time and memory, and nobody else notices; what is kept is the same after a kill.
"""

import random
import shutil
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlog.faces.face import Peer
from interlog.faces.kafka.api.index import SERVED
from interlog.faces.kafka.codec import api, encode
from interlog.faces.kafka.schema import fetch
from interlog.faces.kafka.schema.produce import ProduceRequest
from interlog.journal.files import DiskFiles
from interlog.journal.verify import verify
from tests.playbooks.kafka.groups_play import beat, form
from tests.playbooks.kafka.odd_requests import Dice
from tests.playbooks.kafka.play import Client, Play, frame
from tests.transaction_rig import batch

MOST_CPU_SECONDS = 5.0  # of one request
MOST_ANSWER_BYTES = 8 << 20  # to one request: there is little to tell
EVERY_VERSION = [(key, version) for key, served in SERVED.items() for version in served.versions]
SAYS_WHO = (17, 36)  # after these a client says other things than requests


class Stranger(Client):
    """Who says what need not be a request, and does not read what it is told."""

    def _response(self, data: bytes, start: int, end: int) -> Any:
        return None


def stranger(play: Play) -> Stranger:
    client = Stranger(play, Peer(local_host="127.0.0.1", local_port=9092))
    play.clients.append(client)
    return client


@contextmanager
def playing() -> Iterator[Play]:
    folder = tempfile.mkdtemp(prefix="interlog-fuzz-")
    try:
        play = Play(Path(folder) / "data")
        play.core.create_topic("/", "victim", 1)
        play.core.topic("/", "victim").append_batch(0, batch([b"safe", b"and sound"]))
        play.core.create_topic("/", "t", 2)
        play.core.topic("/", "t").append_batch(0, batch([b"1", b"2", b"3"]))
        play.core.create_topic("/", "c", 1, {"cleanup": "compact", "timestamp": "append", "compression": "lz4"})
        play.core.declare_queue("/", "q", durable=True)
        client = play.connect()
        form(play, client)
        beat(client, "m", group="balanced")
        yield play
        play.close()
        report = verify(DiskFiles(), play.data)
        assert report.sound, report.lines
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ids(play: Play) -> list[bytes]:
    return [view.id for view in play.service.views.all("/") if view.name != "victim"]


def notices_nothing(play: Play, client: Client) -> None:
    wanted = fetch.FetchTopic("victim", partitions=[fetch.FetchPartition(0, partition_max_bytes=1 << 20)])
    (topic,) = client.ask(fetch.FetchRequest(max_bytes=1 << 20, topics=[wanted]), 12).responses
    (found,) = topic.partitions
    assert (found.error_code, found.high_watermark) == (0, 2)
    assert b"safe" in bytes(found.records) and b"and sound" in bytes(found.records)


def kept(play: Play) -> dict[str, Any]:
    """What is to be the same after a kill."""
    core = play.core
    items: list[Any] = [*core.catalog.topics(), *core.catalog.queues()]
    partitions = [core.storage.partition(number) for item in items for number in item.partitions]
    return {
        "items": sorted((item.name, item.partitions, str(item.settings)) for item in items),
        "logs": [(one.id, one.log_start, one.log_end) for one in partitions],
        "cursors": {group: dict(core.cursors.fetch_group("/", group)) for group in core.cursors.groups("/")},
        **core.producers.snapshot(),
        **core.transactions.snapshot(),
    }


def survives(play: Play) -> None:
    play.turn()
    before = kept(play)
    play.restart()
    assert kept(play) == before
    notices_nothing(play, play.connect())


class Bounded:
    """What one request may cost."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def __enter__(self) -> None:
        self.said = len(self.client.raw)
        self.began = time.process_time()

    def __exit__(self, *error: object) -> None:
        assert time.process_time() - self.began < MOST_CPU_SECONDS
        assert len(self.client.raw) - self.said < MOST_ANSWER_BYTES


STEPS = st.lists(
    st.tuples(st.sampled_from(EVERY_VERSION), st.integers(0, 1 << 32), st.sampled_from((0, 0, 0, 0, 1, 400, 11_000))),
    max_size=25,
)


@settings(max_examples=100)
@given(STEPS)
def test_any_requests_in_any_order(steps: list[Any]) -> None:
    with playing() as play:
        other, client = play.connect(), play.connect()
        for (key, version), seed, passes_ms in steps:
            if key in SAYS_WHO:
                continue
            request = Dice(seed, ids(play)).request(key, version)
            body = encode(type(request), version, request)
            answered = not isinstance(request, ProduceRequest) or request.acks != 0
            with Bounded(client):
                client.send_bytes(key, version, body, answered=answered)
                client.listen()
            if passes_ms:
                play.advance(passes_ms)
            client.listen()
            if client.hung_up:
                client = play.connect()
        notices_nothing(play, other)
        survives(play)


def test_every_api_in_every_version() -> None:
    dice = random.Random(7)
    with playing() as play:
        other = play.connect()
        for key, version in EVERY_VERSION:
            for _ in range(12):
                client = play.connect()
                request = Dice(dice.randrange(1 << 32), ids(play)).request(key, version)
                answered = not isinstance(request, ProduceRequest) or request.acks != 0
                with Bounded(client):
                    client.send_bytes(key, version, encode(type(request), version, request), answered=answered)
                    client.listen()
                if not client.hung_up:
                    client.drop()
        play.advance(60_000)
        notices_nothing(play, other)
        survives(play)


def test_hurt_requests() -> None:
    dice = random.Random(8)
    ended = 0
    with playing() as play:
        other = play.connect()
        for key, version in EVERY_VERSION:
            for _ in range(20):
                client = stranger(play)
                made = Dice(dice.randrange(1 << 32), ids(play))
                with Bounded(client):
                    client.send_bytes(key, version, made.hurt(made.body(key, version)))
                    client.listen()
                ended += client.hung_up
                if not client.hung_up:
                    client.drop()
        play.advance(60_000)
        notices_nothing(play, other)
        survives(play)
    assert ended > 1_000  # else it hurts too little to tell anything


@settings(max_examples=300)
@given(st.sampled_from(EVERY_VERSION), st.binary(max_size=60))
def test_any_bytes_as_a_request(api_version: tuple[int, int], body: bytes) -> None:
    # One broker for all: what one example leaves behind must not matter to the next.
    with shared() as play:
        client = stranger(play)
        with Bounded(client):
            client.send_bytes(*api_version, body)
            client.listen()
        if not client.hung_up:
            client.drop()
        play.turn()
        assert set(play.service.connections) == {one.face for one in play.clients if not one.hung_up}


_shared: list[Play] = []


@contextmanager
def shared() -> Iterator[Play]:
    yield _shared[0]


@pytest.fixture(autouse=True, scope="module")
def _one_for_all() -> Iterator[None]:
    with playing() as play:
        _shared.append(play)
        yield
        notices_nothing(play, play.connect())
        survives(play)
        _shared.clear()


def test_whole_connections_in_any_pieces() -> None:
    dice = random.Random(9)
    with playing() as play:
        other = play.connect()
        for number in range(400):
            client = stranger(play)
            data = b""
            for count in range(dice.randrange(1, 8)):
                key, version = dice.choice(EVERY_VERSION)
                made = Dice(dice.randrange(1 << 32), ids(play))
                said = frame(key, version, count, made.body(key, version))
                data += made.hurt(said) if dice.random() < 0.15 else said
            at = 0
            while at < len(data) and not client.hung_up:
                size = dice.choice((1, 8, 50, 400, len(data)))
                client.feed(data[at : at + size])
                at += size
                if dice.random() < 0.3:
                    play.turn()
            if dice.random() < 0.3:
                play.advance(dice.choice((1, 100, 11_000)))
            client.listen()
            if not client.hung_up:
                client.drop()
            if number % 50 == 0:
                notices_nothing(play, other)
        play.turn()
        assert set(play.service.connections) == {one.face for one in play.clients if not one.hung_up}
        notices_nothing(play, other)
        survives(play)


def test_conversations_cut_anywhere() -> None:
    with playing() as play:
        dice = random.Random(10)
        requests = []
        for key, version in ((18, 4), (3, 12), (2, 7), (10, 4), (60, 1), (9, 7), (23, 4), (1, 12), (15, 5), (75, 0)):
            request = Dice(dice.randrange(1 << 32), ids(play)).request(key, version)
            if isinstance(request, fetch.FetchRequest):
                request.max_wait_ms = request.session_id = 0
                request.session_epoch = -1
            requests.append((key, version, encode(type(request), version, request)))
        data = b"".join(frame(key, version, at, body) for at, (key, version, body) in enumerate(requests))
        said_to(play, [data])
        whole = said_to(play, [data])
        assert len(whole) > 500
        for cut in range(1, len(data), 3):
            assert said_to(play, [data[:cut], data[cut:]]) == whole, cut
        assert said_to(play, [bytes((byte,)) for byte in data]) == whole


def said_to(play: Play, parts: list[bytes]) -> bytes:
    client = stranger(play)
    for part in parts:
        client.feed(part)
    client.listen()
    client.drop()
    play.turn()
    return client.raw


@pytest.mark.parametrize(("key", "version"), [(key, served.versions[-1]) for key, served in SERVED.items()])
def test_lengths_that_lie_take_no_memory(key: int, version: int) -> None:
    """Wherever a length may stand there is a large one, and little behind it."""
    tables = api(key)
    assert tables is not None
    dice = random.Random(key)
    with shared() as play:
        for _ in range(20):
            made = Dice(dice.randrange(1 << 32), ids(play))
            body = bytearray(made.body(key, version) + bytes(4))
            at = dice.randrange(len(body))
            for lie in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\x80\x80\x10", b"\0\x03\xff\xff", b"\x7f\xff"):
                client = stranger(play)
                data = frame(key, version, 1, bytes(body[:at] + lie + body[at:]))
                tracemalloc.start()
                try:
                    client.feed(data)
                    play.turn()
                    assert tracemalloc.get_traced_memory()[1] < 20_000_000
                finally:
                    tracemalloc.stop()
                if not client.hung_up:
                    client.drop()
        play.turn()
