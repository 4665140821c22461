"""Celery: worker processes that retry, wait, are revoked, join results and die; over classic and over quorum queues."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery, chain, chord, group
from celery.exceptions import TaskRevokedError
from kombu import pools

from interlog.testing import running
from tests.interop import celery_app
from tests.served import ROOT, clean_environment

PATIENCE_SECONDS = 40  # never waited for when all is well


class Workers:
    """Worker processes of one application, and the application."""

    def __init__(self, broker_url: str, backend: str, queue_type: str, folder: Path) -> None:
        self.folder = folder
        self._environment = {"CELERY_BROKER": broker_url, "CELERY_BACKEND": backend, "CELERY_QUEUE_TYPE": queue_type}
        self.app: Celery = celery_app.make(self._environment)
        self.app.set_default()
        self._running: list[subprocess.Popen[bytes]] = []

    def begin(self, name: str, processes: int = 2) -> "subprocess.Popen[bytes]":
        """A worker, once it answers."""
        words = [sys.executable, "-m", "celery", "-A", "tests.interop.celery_app:app", "worker"]
        words += ["-n", name, "-c", str(processes), "-l", "warning", "--without-heartbeat", "--without-gossip"]
        log = self.folder / f"{name}.log"
        with log.open("wb") as out:
            worker = subprocess.Popen(
                words,
                cwd=ROOT,
                env=clean_environment(self._environment),
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self._running.append(worker)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.app.control.ping([name], timeout=0.3, limit=1):
            assert worker.poll() is None and time.monotonic() < deadline, log.read_text()
        return worker

    def end(self, worker: "subprocess.Popen[bytes]", number: int = signal.SIGKILL) -> None:
        """SIGKILL: it and its children, without a word."""
        if worker.poll() is None:
            os.killpg(worker.pid, number)
        worker.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        for worker in self._running:
            self.end(worker)
        consumer = getattr(self.app.backend, "result_consumer", None)
        if consumer is not None:
            consumer.stop()
        self.app.close()
        pools.reset()

    def stop_taking(self, name: str, queue: str) -> None:
        """The worker takes no more tasks from the queue. It says so before it has done it: the broker knows."""
        before = self.declared(queue).consumer_count
        self.app.control.cancel_consumer(queue, destination=[name], reply=True, timeout=PATIENCE_SECONDS, limit=1)
        until(lambda: self.declared(queue).consumer_count == before - 1)

    def declared(self, queue: str) -> Any:
        """How many messages and consumers it has."""
        with self.app.connection_for_read() as connection:
            return connection.default_channel.queue_declare(queue, passive=True)

    def send(self, name: str, *arguments: Any, **options: Any) -> Any:
        return self.app.tasks[name].apply_async(arguments, **options)


@contextmanager
def workers(queue_type: str, backend: str, folder: Path) -> Iterator[Workers]:
    url = os.environ.get("INTEROP_AMQP_URL")
    if url:
        yield from _workers(url, queue_type, backend, folder)
    else:
        with running() as broker:
            yield from _workers(broker.amqp_url, queue_type, backend, folder)


def _workers(url: str, queue_type: str, backend: str, folder: Path) -> Iterator[Workers]:
    made = Workers(url, backend, queue_type, folder)
    try:
        made.begin(f"{queue_type}@here")
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def classic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """Tasks and results over the broker."""
    with workers("classic", "rpc://", tmp_path_factory.mktemp("classic")) as made:
        yield made


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """Quorum queues, for which Celery keeps delayed tasks in the broker; results in files, which can be joined."""
    folder = tmp_path_factory.mktemp("quorum")
    (folder / "results").mkdir()
    with workers("quorum", f"file://{folder}/results", folder) as made:
        yield made


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def test_tasks_are_shared_and_their_results_come_back(classic: Workers) -> None:
    tasks = classic.app.tasks
    sums = group(tasks["add"].s(number, 1) for number in range(40))()
    assert sums.get(timeout=PATIENCE_SECONDS) == list(range(1, 41))
    met = group(tasks["meet"].s(str(classic.folder), 2) for _ in range(2))()
    assert len(set(met.get(timeout=PATIENCE_SECONDS))) == 2
    steps = chain(tasks["add"].s(1, 2), tasks["add"].s(10), tasks["add"].s(100))()
    assert steps.get(timeout=PATIENCE_SECONDS) == 113
    with pytest.raises(ValueError, match="out of paper"):
        classic.send("fail", "out of paper").get(timeout=PATIENCE_SECONDS)


def test_a_task_that_fails_is_tried_again(classic: Workers) -> None:
    assert classic.send("flaky", 3).get(timeout=PATIENCE_SECONDS) == 3
    with pytest.raises(RuntimeError, match="not yet"):
        classic.send("flaky", 100).get(timeout=PATIENCE_SECONDS)


def test_a_task_for_later_waits_and_a_revoked_one_never_runs(classic: Workers) -> None:
    at = datetime.now(UTC) + timedelta(seconds=1)
    later = classic.send("now", eta=at)
    revoked = classic.send("held", str(classic.folder), "revoked", eta=at)
    revoked.revoke()
    expired = classic.send("now", countdown=1, expires=0.5)
    ran_at = later.get(timeout=PATIENCE_SECONDS)
    assert ran_at >= at.timestamp()
    for result in (revoked, expired):
        with pytest.raises(TaskRevokedError):
            result.get(timeout=PATIENCE_SECONDS)
    assert not list(classic.folder.glob("revoked.*"))


def test_the_workers_can_be_asked(classic: Workers) -> None:
    control, (name,) = classic.app.control, [next(iter(classic.app.control.ping(timeout=1)[0]))]
    inspect = control.inspect([name], timeout=PATIENCE_SECONDS, limit=1)
    assert {"add", "flaky", "now"} <= set(inspect.registered()[name])
    (queue,) = inspect.active_queues()[name]
    assert queue["name"] == "celery-classic"
    control.add_consumer("more", destination=[name], reply=True, timeout=PATIENCE_SECONDS, limit=1)
    assert classic.send("add", 3, 4, queue="more").get(timeout=PATIENCE_SECONDS) == 7
    classic.stop_taking(name, "more")
    classic.send("add", 3, 4, queue="more")
    with classic.app.connection_for_read() as connection:
        assert connection.default_channel.queue_purge("more") == 1


def test_a_chord_joins_what_many_did(quorum: Workers) -> None:
    tasks = quorum.app.tasks
    joined = chord(tasks["add"].s(number, number) for number in range(10))(tasks["total"].s())
    assert joined.get(timeout=PATIENCE_SECONDS) == 90


def test_quorum_queues_keep_tasks_for_later_in_the_broker(quorum: Workers) -> None:
    """For that Celery builds 28 levels of queues and topic exchanges; a worker sees the task when it is due."""
    began = time.time()
    later = quorum.send("now", countdown=2)
    assert quorum.send("add", 1, 1).get(timeout=PATIENCE_SECONDS) == 2
    inspect = quorum.app.control.inspect(timeout=PATIENCE_SECONDS, limit=1)
    assert all(not tasks for tasks in inspect.scheduled().values()), "no worker has it yet"
    ran_at = later.get(timeout=PATIENCE_SECONDS)
    assert ran_at >= began + 1


def test_a_worker_that_is_killed_loses_no_task(quorum: Workers) -> None:
    """It dies with two tasks begun and one fetched: the next worker does all three."""
    doomed = quorum.begin("doomed@here")
    quorum.stop_taking("quorum@here", "celery-quorum")
    results = [quorum.send("held", str(quorum.folder), "job") for _ in range(3)]
    until(lambda: len(list(quorum.folder.glob("job.*.begun"))) == 2)
    quorum.end(doomed)
    (quorum.folder / "job.go").touch()
    quorum.app.control.add_consumer("celery-quorum", destination=["quorum@here"])
    processes = {result.get(timeout=PATIENCE_SECONDS) for result in results}
    begun = {int(path.name.split(".")[1]) for path in quorum.folder.glob("job.*.begun")}
    assert processes < begun and len(begun - processes) == 2
