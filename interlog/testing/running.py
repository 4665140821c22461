"""A broker on a thread of its own, with its own event loop, in a temporary folder.

In come settings, by the names that `interlog serve` has for them; out comes a broker with its addresses. A thread and
not a process, because a thread is ready ten times sooner and cannot be left behind when the tests are killed. The test
talks to it over real sockets like any other client. It ends with the `with` block: ports closed, threads joined, folder
removed.

What is written is never synced while it runs: a test's data need not outlast the test.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar
from urllib.parse import quote

from interlog.app.embedded import Broker
from interlog.app.loops import loop_factory
from interlog.base.log import ROOT
from interlog.core.broker import Core

T = TypeVar("T")

# For a broker that lives as long as a test. Whoever runs tests wants to stop in a debugger without being cut off.
DEFAULTS: Final = {
    "durability": "os",
    "flush_ms": "1h",
    "journal_file_bytes": "1MiB",
    "journal_roll_ms": 0,
    "checkpoint_ms": "1h",
    "amqp_heartbeat_ms": 0,
}

# Clients that a test forgot to close are cut off after this.
GOODBYE_SECONDS: Final = 0.2


class RunningBroker:
    """Where a broker is reached, and as whom. `vhost` is the one that its addresses lead to."""

    def __init__(self, thread: "_Thread", vhost: str = "/") -> None:
        self.addresses = thread.addresses
        self.vhost = vhost
        self.user = "guest"
        self.password = "guest"
        self._thread = thread

    @property
    def amqp_url(self) -> str:
        return f"amqp://{self.user}:{self.password}@{self._address('amqp')}/{quote(self.vhost, safe='')}"

    @property
    def http_url(self) -> str:
        return f"http://{self._address('http')}"

    @property
    def host(self) -> str:
        return self._address("amqp").rpartition(":")[0]

    @property
    def port(self) -> int:
        """AMQP's."""
        return int(self._address("amqp").rpartition(":")[2])

    @property
    def kafka_address(self) -> str:
        """What Kafka clients call a bootstrap server. They see the topics of `vhost`."""
        return self._thread.kafka_address(self.vhost, self._address("kafka"))

    def call(self, function: Callable[[Core], T]) -> T:
        """Run it with the broker's core, on the broker's thread, and wait for the result."""
        found: T = self._thread.call(function)
        return found

    def in_vhost(self, vhost: str) -> "RunningBroker":
        """The same broker, with another vhost in its addresses."""
        return RunningBroker(self._thread, vhost)

    def add_vhost(self, name: str) -> "RunningBroker":
        """Make a vhost in which the user may do everything; the broker with that vhost in its addresses."""

        def add(core: Core) -> None:
            core.create_namespace(name)
            core.access.set_permissions(name, self.user, ".*", ".*", ".*")

        self.call(add)
        return self.in_vhost(name)

    def remove_vhost(self, name: str) -> None:
        """The vhost and all that is in it."""
        self._thread.close_kafka(name)
        self.call(lambda core: core.delete_namespace(name))

    def _address(self, protocol: str) -> str:
        address = self.addresses.get(protocol)
        if address is None:
            raise RuntimeError(f"this broker was told not to serve {protocol}")
        return address


@contextmanager
def running(**settings: object) -> Iterator[RunningBroker]:
    """A broker for the time of the block. Settings are those of `interlog serve`; InterlogError if it cannot start."""
    told: dict[str, Any] = {**DEFAULTS, **settings}
    thread = _Thread(Broker(**told))
    thread.begin()
    try:
        yield RunningBroker(thread)
    finally:
        thread.end()


class _Thread:
    """One broker's thread. The event loop is made, used and closed on it."""

    def __init__(self, broker: Broker) -> None:
        self.addresses: dict[str, str] = {}
        self._broker = broker
        self._kafka: dict[str, str] = {}  # by vhost: addresses that somebody asked for
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._up = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="interlog-testing", daemon=True)

    def begin(self) -> None:
        self._thread.start()
        self._up.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def call(self, function: Callable[[Core], Any]) -> Any:
        async def run() -> Any:
            return function(self._broker.core)

        return self._wait_for(run())

    def kafka_address(self, vhost: str, main: str) -> str:
        """A port's clients see one vhost; those that are not seen by way of the main one get a port when asked for."""
        if vhost == self._broker.settings.kafka_namespace:
            return main
        if vhost not in self._kafka:
            self._kafka[vhost] = self._wait_for(self._broker.open_kafka(vhost))
        return self._kafka[vhost]

    def close_kafka(self, vhost: str) -> None:
        async def close() -> None:
            self._broker.close_kafka(vhost)

        if self._kafka.pop(vhost, None) is not None:
            self._wait_for(close())

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(self._serve())
        except BaseException as failure:  # raised again on the thread of whoever waits
            self._failure = failure
        finally:
            self._up.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        with _weaker_durability_is_meant():
            await self._broker.start()
        self.addresses = dict(self._broker.addresses)
        self._up.set()
        await self._stop.wait()
        await self._broker.stop(GOODBYE_SECONDS)


@contextmanager
def _weaker_durability_is_meant() -> Iterator[None]:
    """Who runs a broker for a test need not be warned of that in each test's log."""
    from interlog.web.status import OS_WARNING

    def keep(record: logging.LogRecord) -> bool:
        return OS_WARNING not in record.getMessage()

    logger = logging.getLogger(f"{ROOT}.app")
    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)
