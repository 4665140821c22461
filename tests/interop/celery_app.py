"""The Celery application of test_celery.py, imported by its workers and by the test alike. Told by the environment.

CELERY_BROKER, CELERY_BACKEND   where tasks and results go
CELERY_QUEUE_TYPE               classic or quorum
CELERY_FOLDER                   where tasks leave files for the test to see
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

from celery import Celery, Task


def make(environment: dict[str, str]) -> Celery:
    app = Celery("interop", broker=environment["CELERY_BROKER"], backend=environment["CELERY_BACKEND"])
    app.conf.update(
        task_default_queue=f"celery-{environment['CELERY_QUEUE_TYPE']}",
        task_default_queue_type=environment["CELERY_QUEUE_TYPE"],
        task_default_exchange_type="topic" if environment["CELERY_QUEUE_TYPE"] == "quorum" else "direct",
        broker_transport_options={"confirm_publish": True},
        broker_connection_retry_on_startup=True,
        result_chord_retry_interval=0.1,
        worker_prefetch_multiplier=4,
        task_publish_retry=False,
    )
    app.task(name="add")(add)
    app.task(name="total")(total)
    app.task(name="now")(now)
    app.task(name="meet")(meet)
    app.task(name="flaky", bind=True, max_retries=5)(flaky)
    app.task(name="fail")(fail)
    app.task(name="held", acks_late=True)(held)
    return app


def add(x: int, y: int) -> int:
    return x + y


def total(numbers: list[int]) -> int:
    return sum(numbers)


def now() -> float:
    return time.time()


def meet(folder: str, count: int) -> int:
    """Ends once as many processes are in it."""
    (Path(folder) / f"{os.getpid()}.met").touch()
    _until(lambda: len(list(Path(folder).glob("*.met"))) >= count)
    return os.getpid()


def flaky(self: Task, failures: int) -> int:
    """Fails as often as it is told; then, how often it was tried."""
    tried: int = self.request.retries
    if tried < failures:
        raise self.retry(countdown=0.05, exc=RuntimeError("not yet"))
    return tried


def fail(reason: str) -> None:
    raise ValueError(reason)


def held(folder: str, name: str) -> int:
    """Says that it has begun; ends when the test says so."""
    (Path(folder) / f"{name}.{os.getpid()}.begun").touch()
    _until((Path(folder) / f"{name}.go").exists)
    return os.getpid()


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.01)


if "CELERY_BROKER" in os.environ:
    app = make(dict(os.environ))
