"""The driver, the listeners and the threads, with a toy face: it gives back each line it gets."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
import uvloop

from interlog.base.errors import ReadOnlyError
from interlog.base.limits import OUTPUT_HOLD_BYTES
from interlog.base.metrics import Metrics
from interlog.faces.face import Peer
from interlog.journal.journal import Outcome, Ticket
from interlog.net.driver import Driver
from interlog.net.listener import Listener, ListenError
from interlog.net.worker import ThreadWorker

PATIENCE_SECONDS = 10


class Owner:
    """A core that only counts, and hands out tickets that the test resolves."""

    def __init__(self) -> None:
        self.commits = 0
        self.polls = 0
        self.ticket = Ticket()
        self.committed: list[Ticket] = []
        self.error: Exception | None = None
        self.poll_error: Exception | None = None

    def commit(self) -> Ticket:
        if self.error is not None:
            raise self.error
        self.commits += 1
        ticket, self.ticket = self.ticket, Ticket()
        self.committed.append(ticket)
        return ticket

    def meet_deadlines(self) -> float | None:
        return None

    def poll(self) -> None:
        self.polls += 1
        if self.poll_error is not None:
            raise self.poll_error

    def resolve(self) -> None:
        committed, self.committed = self.committed, []
        for ticket in committed:
            ticket.resolve(Outcome.DURABLE)


class LineEcho:
    """Gives back lines. `safe …` is answered when durable; `flood N`, `fail`, `hold`, `bye` do what they say."""

    def __init__(self, owner: Owner, wake: Callable[[], None]) -> None:
        self.owner = owner
        self.wake = wake
        self.closed = False
        self.holding = False
        self.parked = 0
        self.pauses = 0
        self.resumes = 0
        self.checks = 0
        self.lost = 0
        self.bursts: list[bytes] = []
        self._input = b""
        self._output: list[bytes] = []
        self._stopping = False

    def receive(self, data: bytes) -> None:
        self.bursts.append(data)
        *lines, self._input = (self._input + data).split(b"\n")
        for line in lines:
            self._line(line)

    def _line(self, line: bytes) -> None:
        word, _, rest = line.partition(b" ")
        if word == b"safe":
            self.parked += 1
            self.owner.ticket.when_durable(lambda outcome: self._durable(rest, outcome))
        elif word == b"flood":
            self._output.append(b"x" * int(rest))
        elif word == b"fail":
            raise RuntimeError("as asked")
        elif word == b"hold":
            self.holding = True
        else:
            self._output.append(line + b"\n")
            self.closed = self.closed or word == b"bye"

    def _durable(self, line: bytes, outcome: Outcome) -> None:
        self.parked -= 1
        self._output.append(line + b" " + outcome.value.encode() + b"\n")
        self.closed = self._stopping and not self.parked
        self.wake()

    def take_output(self) -> Sequence[bytes]:
        output, self._output = self._output, []
        return output

    def pause(self) -> None:
        self.pauses += 1

    def resume(self) -> None:
        self.resumes += 1

    def check(self) -> None:
        self.checks += 1

    def shut_down(self) -> None:
        self._stopping = True
        self.closed = not self.parked

    def connection_lost(self) -> None:
        self.lost += 1


class Net:
    """A driver with one listener for the toy face, and clients."""

    def __init__(self, limit: int = 100, most: int = 100) -> None:
        self.loop = asyncio.get_running_loop()
        self.owner = Owner()
        self.metrics = Metrics()
        self.driver = Driver(self.loop, self.owner, self.metrics, most)
        self.faces: list[LineEcho] = []
        self.listener = Listener("echo", self.driver, self.make_face, self.metrics, limit)

    def make_face(self, wake: Callable[[], None], peer: Peer) -> LineEcho:
        self.faces.append(LineEcho(self.owner, wake))
        return self.faces[-1]

    async def open(self) -> None:
        await self.listener.listen(self.loop, "127.0.0.1", 0)

    async def client(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = self.listener.address.rpartition(":")
        return await asyncio.open_connection(host, int(port))

    async def until(self, true: Callable[[], Any]) -> None:
        """The loop turns until something is so: it was caused already, and only has to arrive."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not true():
                await asyncio.sleep(0.001)

    async def close(self) -> None:
        self.listener.close()
        self.owner.resolve()
        await self.driver.drain(PATIENCE_SECONDS)
        self.driver.close()


@pytest.fixture(params=[asyncio.SelectorEventLoop, uvloop.Loop], ids=["asyncio", "uvloop"])
def play(request: pytest.FixtureRequest) -> Callable[[Callable[[Net], Awaitable[None]]], None]:
    """Runs a scene with an open net, on both event loops."""

    def run(scene: Callable[[Net], Awaitable[None]], **options: Any) -> None:
        async def whole() -> None:
            net = Net(**options)
            await net.open()
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await scene(net)
            finally:
                await net.close()

        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(whole())

    return run


Play = Callable[..., None]


def test_what_comes_in_goes_through_the_face_and_out(play: Play) -> None:
    async def scene(net: Net) -> None:
        reader, writer = await net.client()
        writer.write(b"one\ntw")
        assert await reader.readline() == b"one\n"
        writer.write(b"o\n")
        assert await reader.readline() == b"two\n"
        assert net.driver.received.value == net.driver.sent.value == 8
        writer.close()
        await net.until(lambda: net.faces[0].lost)
        assert not net.driver.connections
        assert net.listener.open == 0

    play(scene)


def test_a_burst_of_all_connections_is_committed_once(play: Play) -> None:
    async def scene(net: Net) -> None:
        clients = [await net.client() for _ in range(10)]
        await net.until(lambda: len(net.driver.connections) == 10)
        connections = list(net.driver.connections)
        before = net.owner.commits
        for connection in connections:  # what the loop does with ten sockets that are ready in one turn
            connection.data_received(b"hello\n")
            connection.data_received(b"again\n")
        for reader, _ in clients:
            assert await reader.readexactly(12) == b"hello\nagain\n"
        assert net.owner.commits == before + 1
        for _, writer in clients:
            writer.close()

    play(scene)


def test_a_parked_reply_leaves_when_its_tick_is_durable_and_not_before(play: Play) -> None:
    async def scene(net: Net) -> None:
        reader, writer = await net.client()
        writer.write(b"safe one\nsafe two\nplain\n")
        assert await reader.readline() == b"plain\n"
        assert net.faces[0].parked == 2
        net.owner.resolve()
        assert await reader.readline() == b"one durable\n"
        assert await reader.readline() == b"two durable\n"
        writer.close()

    play(scene)


def test_a_face_can_wake_another(play: Play) -> None:
    async def scene(net: Net) -> None:
        _, publisher = await net.client()
        await net.until(lambda: len(net.faces) == 1)
        reader, consumer = await net.client()
        await net.until(lambda: len(net.faces) == 2)
        first, second = net.faces
        first._line = lambda line: (second._output.append(line + b"\n"), second.wake())  # type: ignore[assignment, method-assign, func-returns-value]
        publisher.write(b"to the other\n")
        assert await reader.readline() == b"to the other\n"
        publisher.close()
        consumer.close()

    play(scene)


def test_a_face_that_closes_has_its_last_words_written(play: Play) -> None:
    async def scene(net: Net) -> None:
        reader, writer = await net.client()
        writer.write(b"one\nbye\n")
        assert await reader.read() == b"one\nbye\n"
        writer.close()

    play(scene)


def test_a_face_that_fails_costs_its_own_connection_only(play: Play) -> None:
    async def scene(net: Net) -> None:
        reader, writer = await net.client()
        other_reader, other = await net.client()
        writer.write(b"fail\n")
        with pytest.raises(ConnectionError):
            assert await reader.read() == b""
            raise ConnectionResetError  # some systems end the stream instead
        other.write(b"alive\n")
        assert await other_reader.readline() == b"alive\n"
        writer.close()
        other.close()

    play(scene)


def test_the_end_of_input_waits_for_parked_replies(play: Play) -> None:
    async def scene(net: Net) -> None:
        reader, writer = await net.client()
        writer.write(b"safe last\n")
        writer.write_eof()
        await net.until(lambda: net.faces and net.faces[0].parked and net.owner.committed)
        net.owner.resolve()
        assert await reader.read() == b"last durable\n"
        writer.close()

    play(scene)


def test_who_does_not_read_is_read_no_more_until_it_does(play: Play) -> None:
    async def scene(net: Net) -> None:
        reader, writer = await net.client()
        size = OUTPUT_HOLD_BYTES + 16 * 1024 * 1024
        writer.write(b"flood %d\n" % size)
        connection = await connected(net)
        await net.until(lambda: connection._read_paused)
        assert net.faces[0].pauses == 1
        writer.write(b"later\n")
        await reader.readexactly(size)
        assert await reader.readline() == b"later\n"
        assert net.faces[0].resumes == 1
        assert not connection._read_paused
        writer.close()

    play(scene)


def test_a_face_that_holds_is_not_fed(play: Play) -> None:
    async def scene(net: Net) -> None:
        reader, writer = await net.client()
        writer.write(b"hold\n")
        connection = await connected(net)
        await net.until(lambda: connection._read_paused)
        writer.write(b"late\n")
        bursts = len(net.faces[0].bursts)
        net.faces[0].holding = False
        assert len(net.faces[0].bursts) == bursts
        net.faces[0].wake()
        assert await reader.readline() == b"late\n"
        writer.close()

    play(scene)


async def connected(net: Net) -> Any:
    await net.until(lambda: net.driver.connections)
    return next(iter(net.driver.connections))


@pytest.mark.parametrize("limits", [{"limit": 2}, {"most": 2}])
def test_connections_past_the_limit_are_closed_at_once(play: Play, limits: dict[str, int]) -> None:
    async def scene(net: Net) -> None:
        clients = [await net.client() for _ in range(2)]
        await net.until(lambda: net.listener.open == 2)
        reader, writer = await net.client()
        try:
            assert await reader.read() == b""
        except ConnectionError:
            pass
        writer.close()
        clients[0][1].close()
        await net.until(lambda: net.listener.open == 1)
        reader, writer = await net.client()
        writer.write(b"in\n")
        assert await reader.readline() == b"in\n"
        text = net.metrics.render()
        assert 'interlog_connections_refused_total{protocol="echo"} 1' in text
        assert 'interlog_connections_accepted_total{protocol="echo"} 3' in text
        for _, one in [*clients, (reader, writer)]:
            one.close()

    play(scene, **limits)


def test_draining_waits_for_parked_replies_and_closes(play: Play) -> None:
    async def scene(net: Net) -> None:
        idle_reader, idle = await net.client()
        reader, writer = await net.client()
        writer.write(b"safe last\n")
        await net.until(lambda: any(face.parked for face in net.faces) and net.owner.committed)
        draining = asyncio.ensure_future(net.driver.drain(PATIENCE_SECONDS))
        assert await idle_reader.read() == b""
        assert not draining.done()
        net.owner.resolve()
        assert await reader.read() == b"last durable\n"
        await draining
        assert [face.lost for face in net.faces] == [1, 1]
        idle.close()
        writer.close()

    play(scene)


def test_draining_cuts_who_keeps_it_waiting(play: Play) -> None:
    async def scene(net: Net) -> None:
        _, writer = await net.client()
        writer.write(b"safe never\n")
        await net.until(lambda: net.faces and net.faces[0].parked)
        await net.driver.drain(0.01)
        assert not net.driver.connections
        assert net.faces[0].lost == 1
        writer.close()
        net.faces[0].parked = 0

    play(scene)


def test_a_core_that_raises_stops_the_broker(play: Play) -> None:
    async def scene(net: Net) -> None:
        failures: list[BaseException] = []
        net.driver.failed = failures.append
        net.owner.error = RuntimeError("broken")
        _, writer = await net.client()
        writer.write(b"x\ny\n")
        await net.until(lambda: failures)
        writer.write(b"z\n")
        await net.until(lambda: len(net.faces[0].bursts) == 2)
        assert failures == [net.owner.error]
        net.owner.error = None
        writer.close()

    play(scene)


def test_a_journal_that_failed_stops_the_broker_after_the_last_replies(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(net: Net) -> None:
        failures: list[BaseException] = []
        net.driver.failed = failures.append
        reader, writer = await net.client()
        writer.write(b"safe one\n")
        await net.until(lambda: net.owner.committed)
        net.owner.poll_error = ReadOnlyError("The sync of a journal file failed.")
        net.driver.start()
        await net.until(lambda: failures)
        for ticket in net.owner.committed:
            ticket.resolve(Outcome.UNKNOWN)
        assert await reader.readline() == b"one unknown\n"
        writer.close()

    play(scene)
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == ["the journal failed"]


def test_the_owner_is_polled_and_the_faces_are_checked(play: Play) -> None:
    async def scene(net: Net) -> None:
        net.driver.start()
        _, writer = await net.client()
        await net.until(lambda: net.owner.polls >= 2)
        net.driver._polls = 9
        await net.until(lambda: net.faces[0].checks)
        writer.close()

    play(scene)


def test_a_connection_that_is_lost_before_its_turn_costs_the_others_nothing(play: Play) -> None:
    async def scene(net: Net) -> None:
        clients = [await net.client() for _ in range(21)]
        await net.until(lambda: len(net.driver.connections) == 21)
        net.driver._check_some()  # a round begins
        order = list(net.driver._round)
        lost = order[1]  # of the next turn, in which order[11] comes after it
        lost.abort()
        await net.until(lambda: lost not in net.driver.connections)
        net.driver._check_some()
        assert sum(face.checks for face in net.faces) == 4
        for _, writer in clients:
            writer.close()

    play(scene)


# -- listeners


def refusal(host: str, port: int) -> str:
    async def scene() -> str:
        net = Net()
        with pytest.raises(ListenError) as caught:
            await net.listener.listen(net.loop, host, port)
        return str(caught.value)

    return asyncio.run(scene())


def test_a_port_in_use_is_told_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sentence = refusal("127.0.0.1", port)
    assert sentence == (
        f"Port {port} of 127.0.0.1 cannot be opened for echo: it is in use. Stop the process that has it, or choose "
        "another with --echo-port (0: the system chooses; off: not served)."
    )


def test_an_address_of_another_machine_is_told() -> None:
    assert refusal("192.0.2.1", 0).endswith("it is not an address of this machine. Choose another with --host.")
    assert "is not an address or a host name" in refusal("no such host", 0)


# -- threads


def test_jobs_run_beside_the_loop_and_report_on_it() -> None:
    async def scene() -> None:
        worker = ThreadWorker(asyncio.get_running_loop())
        here = threading.get_ident()
        told = asyncio.get_running_loop().create_future()
        worker.submit(
            threading.get_ident, lambda result, error: told.set_result((result, error, threading.get_ident()))
        )
        there, error, told_in = await asyncio.wait_for(told, PATIENCE_SECONDS)
        assert there != here
        assert (error, told_in) == (None, here)
        worker.close()

    asyncio.run(scene())


def test_a_job_that_fails_reports_its_error() -> None:
    async def scene() -> None:
        worker = ThreadWorker(asyncio.get_running_loop())
        told: list[Any] = []

        def fail() -> None:
            raise OSError("no room")

        worker.submit(fail, lambda result, error: told.append((result, error)))
        worker.drain()
        assert told[0][0] is None
        assert isinstance(told[0][1], OSError)
        worker.close()

    asyncio.run(scene())


def test_a_short_job_does_not_wait_behind_a_long_one() -> None:
    async def scene() -> None:
        worker = ThreadWorker(asyncio.get_running_loop())
        gate = threading.Event()
        order: list[str] = []
        done = asyncio.Event()

        def short(result: None, error: BaseException | None) -> None:
            order.append("short")
            done.set()

        worker.submit(gate.wait, lambda result, error: order.append("long"))
        worker.submit(lambda: None, short)
        await asyncio.wait_for(done.wait(), PATIENCE_SECONDS)
        gate.set()
        worker.close()
        assert order == ["short", "long"]

    asyncio.run(scene())


def test_draining_waits_for_what_the_jobs_submit_in_turn() -> None:
    async def scene() -> None:
        worker = ThreadWorker(asyncio.get_running_loop(), threads=1)
        told: list[int] = []

        def again(result: Any, error: BaseException | None) -> None:
            told.append(result)
            if result < 3:
                worker.submit(lambda: result + 1, again)

        worker.submit(lambda: 1, again)
        worker.drain()
        assert told == [1, 2, 3]
        worker.close()
        with pytest.raises(RuntimeError, match="closed"):
            worker.submit(lambda: 1, again)

    asyncio.run(scene())
