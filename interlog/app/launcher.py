"""The launcher: builds the broker in order, stops it in reverse.

In come settings; out comes a running broker with its real addresses. The order: the core on its data folder
(recovery happens here), the driver, the listeners, the ready file. Stopping: no new connections, goodbyes and parked
replies, the last checkpoint, the threads, the folder's lock.
"""

import asyncio
import functools
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from interlog.app.settings import TLS_PROTOCOLS, Settings
from interlog.base.clock import Clock, SystemClock
from interlog.base.errors import FolderError
from interlog.base.limits import DRAIN_SECONDS, MAX_CONNECTIONS, MAX_HTTP_CONNECTIONS
from interlog.base.log import get_log
from interlog.base.metrics import Metrics
from interlog.base.version import VERSION
from interlog.core.broker import Core, CoreSettings
from interlog.faces.amqp.service import AmqpService, AmqpSettings
from interlog.faces.face import MakeFace, Peer, Wake
from interlog.net.driver import Driver
from interlog.net.listener import Listener
from interlog.net.open_files import connections_allowed
from interlog.net.tls import Tls, TlsError
from interlog.net.worker import ThreadWorker
from interlog.web.http import Answer, HttpFace
from interlog.web.status import OS_WARNING, About, Status

if TYPE_CHECKING:
    from interlog.faces.kafka.connection import KafkaConnection
    from interlog.faces.kafka.service import KafkaService, KafkaSettings

log = get_log("app")


class Launcher:
    """One broker in this process. `start` it, use `addresses` and `core`, `stop` it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.addresses: dict[str, str] = {}
        self.failure: BaseException | None = None  # why the broker stopped by itself
        self.on_failure: Callable[[], None] = lambda: None
        self._core: Core | None = None
        self._undo: list[Callable[[], None]] = []  # what has been built, last first when stopping
        self._driver: Driver | None = None
        self._listeners: list[Listener] = []
        self._kafka_ports: dict[str, tuple[Listener, KafkaService]] = {}  # beside the one of the settings
        self._status: Status | None = None
        self._tls: Tls | None = None

    @property
    def core(self) -> Core:
        assert self._core is not None, "the broker has not been started"
        return self._core

    async def start(self) -> None:
        """Everything up and accepting, or nothing left behind and an InterlogError that says why."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        settings = self.settings
        loop = asyncio.get_running_loop()
        clock = SystemClock(_set_back)
        began = clock.monotonic()
        metrics = Metrics()
        _remove(settings.ready_file)  # one from an earlier start would lie

        worker = ThreadWorker(loop)
        self._undo.append(worker.close)
        data = settings.data.absolute()
        self._core = core = Core.open(data, settings=core_settings(settings), clock=clock, worker=worker)
        self._undo.append(core.close)
        self._undo.append(worker.drain)  # what is under way ends before the core closes
        if core.access.make_first_user(settings.default_user, settings.default_password):
            log.debug("first user", user=settings.default_user)
        log.info("data", folder=data, durability=settings.durability, opened_ms=_since(clock, began))
        if settings.durability == "os":
            log.warning(OS_WARNING)

        driver = Driver(loop, core, metrics, connections_allowed())
        driver.failed = self._failed
        self._driver = driver
        self._undo.append(driver.close)
        about = About(str(data), settings.durability, settings.flush_ms, began, self.addresses)
        self._status = Status(core.status, about, clock, metrics)
        status = self._status

        @functools.cache
        def answer() -> Answer:
            from interlog.web.management import management  # here, because most starts are not asked over HTTP at once

            return management(status, core).answer

        def http(wake: Wake, peer: Peer) -> HttpFace:
            return HttpFace(answer(), clock, wake, peer.host, peer.loopback)

        core.on_more = driver.schedule
        core.traffic = driver.traffic
        core.deadlines.on_sooner = driver.alarm

        @functools.cache
        def kafka() -> "KafkaService":
            from interlog.faces.kafka.service import KafkaService  # here, because a start needs no more than the port

            return KafkaService(core, kafka_settings(settings), metrics)

        def kafka_face(wake: Wake, peer: Peer) -> "KafkaConnection":
            return kafka().face(wake, peer)

        amqp = AmqpService(core, amqp_settings(settings), metrics)
        faces: dict[str, tuple[MakeFace, int]] = {
            "amqp": (amqp.face, MAX_CONNECTIONS),
            "amqps": (amqp.face, MAX_CONNECTIONS),
            "kafka": (kafka_face, MAX_CONNECTIONS),
            "kafkas": (kafka_face, MAX_CONNECTIONS),
            "http": (http, MAX_HTTP_CONNECTIONS),
            "https": (http, MAX_HTTP_CONNECTIONS),
        }
        for protocol, port in settings.ports():
            make_face, limit = faces[protocol]
            tls = self._certificates() if protocol in TLS_PROTOCOLS else None
            listener = Listener(protocol, driver, make_face, metrics, limit, tls)
            self._listeners.append(listener)
            await listener.listen(loop, settings.host, port)
            self.addresses[protocol] = listener.address
            log.info("listening", protocol=protocol, address=listener.address)
        driver.start()
        if settings.ready_file is not None:
            _write_ready_file(settings.ready_file, self.addresses)
            self._undo.append(lambda: _remove(settings.ready_file))
        log.info("ready", version=VERSION, pid=os.getpid(), in_ms=_since(clock, began))

    async def open_kafka(self, namespace: str) -> str:
        """One more port, whose Kafka clients see this namespace; its address. What happens there is in no metric."""
        from interlog.faces.kafka.service import KafkaService

        assert self._driver is not None, "the broker has not been started"
        assert namespace not in self._kafka_ports, "it has its port"
        told = replace(kafka_settings(self.settings), namespace=namespace, advertised="")
        metrics = Metrics()
        service = KafkaService(self.core, told, metrics)
        listener = Listener("kafka", self._driver, service.face, metrics)
        await listener.listen(asyncio.get_running_loop(), self.settings.host, 0)
        self._listeners.append(listener)
        self._kafka_ports[namespace] = (listener, service)
        return listener.address

    def close_kafka(self, namespace: str) -> None:
        """Close that port, and the connections that came by it."""
        listener, service = self._kafka_ports.pop(namespace)
        self._listeners.remove(listener)
        listener.close()
        service.close()

    def reload_certificates(self) -> None:
        """Read the files of the broker's certificate again; open connections stay as they are."""
        if self._tls is None:
            return
        try:
            self._tls.reload()
        except TlsError as error:
            log.error("the old certificate stays in use", reason=error)
        else:
            log.info("certificate", file=self.settings.tls_certificate)

    def _certificates(self) -> Tls:
        """One for all TLS ports."""
        settings = self.settings
        if self._tls is None:
            assert settings.tls_certificate is not None, "the settings have been checked"
            self._tls = Tls(settings.tls_certificate, settings.tls_key, settings.tls_ca, settings.tls_client)
        return self._tls

    async def stop(self, drain_seconds: float = DRAIN_SECONDS) -> None:
        """Stop in reverse. Safe to call at any time, and again."""
        if self._status is not None:
            self._status.stopping = True
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        if self._driver is not None:
            await self._driver.drain(drain_seconds)
            self._driver = None
        while self._undo:
            try:
                self._undo.pop()()
            except Exception as error:
                log.failure("stopping went wrong", error)
                self.failure = self.failure or error

    async def __aenter__(self) -> "Launcher":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _failed(self, error: BaseException) -> None:
        self.failure = error
        self.on_failure()


def _set_back(ms: int) -> None:
    log.warning(
        f"The machine's clock is {ms / 1000:.1f} s behind what it showed: it was set back. The broker's time goes on "
        "as before until the clock has caught up; a restart before that takes the clock's time.",
        set_back_ms=ms,
    )


def amqp_settings(settings: Settings) -> AmqpSettings:
    return AmqpSettings(
        heartbeat_s=settings.amqp_heartbeat_ms // 1_000,
        frame_max=settings.amqp_frame_bytes,
        channel_max=settings.amqp_channel_max,
        max_message_bytes=settings.max_message_bytes,
        consumer_timeout_ms=settings.consumer_timeout_ms,
    )


def kafka_settings(settings: Settings) -> "KafkaSettings":
    from interlog.faces.kafka.service import KafkaSettings

    return KafkaSettings(
        namespace=settings.kafka_namespace,
        advertised=settings.kafka_advertised,
        advertised_tls=settings.kafkas_advertised,
        auto_create=settings.kafka_auto_create == "on",
        telemetry=settings.kafka_telemetry == "on",
        node_id=settings.kafka_node_id,
        default_partitions=settings.kafka_default_partitions,
        min_session_ms=settings.kafka_min_session_ms,
        max_session_ms=settings.kafka_max_session_ms,
        rebalance_delay_ms=settings.kafka_rebalance_delay_ms,
        group_session_ms=settings.kafka_group_session_ms,
        group_heartbeat_ms=settings.kafka_group_heartbeat_ms,
        offsets_retention_ms=settings.kafka_offsets_retention_ms,
        max_request_bytes=settings.kafka_request_bytes,
        fetch_max_bytes=settings.kafka_fetch_bytes,
        authentication=settings.kafka_authentication == "on",
        idle_s=settings.kafka_idle_ms / 1_000,
    )


def core_settings(settings: Settings) -> CoreSettings:
    """What the core needs to know of the settings."""
    return CoreSettings(
        durability=settings.durability,
        flush_ms=settings.flush_ms,
        journal_file_bytes=settings.journal_file_bytes,
        journal_roll_ms=settings.journal_roll_ms,
        checkpoint_ms=settings.checkpoint_ms,
        memory_bytes=settings.memory_bytes,
        queue_memory_bytes=settings.queue_memory_bytes,
        min_free_bytes=settings.min_free_bytes,
        loopback_users=settings.loopback_users,
    )


def _write_ready_file(path: Path, addresses: dict[str, str]) -> None:
    """Whole or not at all: who waits for the file may read it as soon as it is there."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(json.dumps(addresses) + "\n", encoding="utf-8")
        os.replace(unfinished, path)
    except OSError as error:
        _remove(unfinished)
        raise FolderError(f"The ready file {path} cannot be written: {error.strerror}.") from error


def _remove(path: Path | None) -> None:
    if path is not None:
        try:
            path.unlink(missing_ok=True)
        except OSError:
            pass  # writing it will say why


def _since(clock: Clock, began: float) -> int:
    return round((clock.monotonic() - began) * 1000)
