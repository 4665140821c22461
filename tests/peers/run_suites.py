"""Runs the clients' own test suites against Interlog or the real RabbitMQ or Kafka, and puts the results side by side.

    python -m tests.peers.run_suites --target rabbitmq            all its suites, a broker of their own, results kept
    python -m tests.peers.run_suites --target interlog --suite pika --suite kafka-python
    python -m tests.peers.run_suites --target interlog --suite pika --url amqp://guest:guest@127.0.0.1:5672/
    python -m tests.peers.run_suites --target kafka --suite aiokafka --url kafka://127.0.0.1:9092
    python -m tests.peers.run_suites --table                      only the table of what was kept

Everything is in one folder outside the repository (--work, default peers in the system's temporary folder): src/NAME
holds the suites' source trees, the rest is made. --download gets the trees that come with source distributions; the
others are told by name. Each suite gets a fresh broker unless --url is given; -k goes to the tests.
"""

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.peers.amqp_suites import AMQP
from tests.peers.kafka import Kafka, NoKafka
from tests.peers.kafka_suites import KAFKA, TAKEN_FOR
from tests.peers.rabbitmq import NoRabbitMQ
from tests.peers.results import keep, table
from tests.peers.runs import run
from tests.peers.stand_in import StandIn
from tests.peers.suites import USERS, Place, Suite
from tests.peers.targets import Interlog, NoTarget, Rabbit, Running, host_port
from tests.peers.workshop import CannotRun, Workshop

SUITES = {suite.name: suite for suite in (*AMQP, *KAFKA)}
REAL = {"rabbitmq": AMQP, "kafka": KAFKA}


@contextmanager
def place_for(given: argparse.Namespace, workshop: Workshop, suite: Suite) -> Iterator[Place]:
    """A target for one suite, from its start to its stop."""
    folder = Path(tempfile.mkdtemp(prefix=f"{given.target}-", dir=workshop.folder))
    try:
        start = of_kafka if suite in KAFKA else of_amqp
        with start(given, workshop, suite, folder) as place:
            yield place
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def of_kafka(given: argparse.Namespace, workshop: Workshop, suite: Suite, folder: Path) -> Iterator[Place]:
    if workshop.certificates is None:
        raise CannotRun("there is no openssl on this machine")
    place = partial(Place, certificates=workshop.certificates.ca.parent, version=TAKEN_FOR)
    if given.url:
        host, port = host_port(given.url)
        yield place(host, port, given.tls_port, sasl_port=port, sasl_tls_port=given.tls_port)
    elif given.target == "interlog":
        flags = ("--kafka-default-partitions", str(suite.partitions), "--kafka-advertised", "127.0.0.1")
        users = USERS if suite.logs_in else {}
        interlog = Interlog(folder, certificates=workshop.certificates, users=users, flags=flags)
        with Running(interlog):
            if not suite.logs_in:
                interlog.forget_permissions()
            port, tls_port = (host_port(f"kafka://{address}")[1] for address in (interlog.kafka, interlog.kafkas))
            yield place("127.0.0.1", port, tls_port, sasl_port=port, sasl_tls_port=tls_port)
    else:
        settings = {"num.partitions": str(suite.partitions)}
        with Kafka(
            folder, version=TAKEN_FOR, settings=settings, users=USERS, certificates=workshop.certificates
        ) as node:
            sasl_port, sasl_tls_port = node.sasl_port, node.sasl_tls_port
            yield place("127.0.0.1", node.port, node.tls_port, sasl_port=sasl_port, sasl_tls_port=sasl_tls_port)


@contextmanager
def of_amqp(given: argparse.Namespace, workshop: Workshop, suite: Suite, folder: Path) -> Iterator[Place]:
    if given.url:
        with amqp_place(suite, given.url, given.tls_port, given.management_url) as place:
            yield place
        return
    target: Interlog | Rabbit
    if given.target == "rabbitmq":
        target = Rabbit(folder, certificates=workshop.certificates, management=suite.needs_management)
    else:
        target = Interlog(folder, certificates=None if given.no_tls else workshop.certificates)
    with Running(target), amqp_place(suite, target.url, target.tls_port, target.management_url) as place:
        yield place


@contextmanager
def amqp_place(suite: Suite, url: str, tls_port: int, management_url: str) -> Iterator[Place]:
    if suite.needs_management and not management_url:
        raise CannotRun("there is no management API here")
    host, port = host_port(url)
    with StandIn(host, port) as stand_in:
        yield Place(host, port, tls_port or 1, url, management_url if suite.needs_management else stand_in.url)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--target", choices=("interlog", *REAL))
    options.add_argument("--suite", action="append", choices=list(SUITES))
    options.add_argument("--url", default="", help="a broker that runs already")
    options.add_argument("--tls-port", type=int, default=0, help="of the broker at --url")
    options.add_argument("--management-url", default="", help="of the broker at --url")
    options.add_argument("--no-tls", action="store_true", help="start Interlog without its TLS port")
    options.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "peers")
    options.add_argument("--download", action="store_true", help="get source distributions that are missing")
    options.add_argument("--table", action="store_true", help="only the table of what was kept")
    options.add_argument("-k", dest="expression", help="only tests of such a name; nothing is kept")
    given = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is stopped then, too
    workshop = Workshop(given.work.absolute())
    if given.table or not given.target:
        return show(workshop)
    chosen = given.suite or [suite.name for suite in REAL.get(given.target, SUITES.values())]
    for suite in [SUITES[name] for name in chosen]:
        try:
            if given.download:
                workshop.download(suite)
            workshop.tree(suite)
            with place_for(given, workshop, suite) as place:
                result = run(workshop, suite, given.target, place, given.expression)
        except (CannotRun, NoTarget, NoRabbitMQ, NoKafka) as error:
            print(f"{suite.name}: not run: {error}", flush=True)
            continue
        print(result.summary, flush=True)
        for name, words in result.failed.items():
            print(f"  FAILED {name}: {words}")
        if not given.expression:
            keep(workshop.results, result)
    show(workshop)
    return 0


def show(workshop: Workshop) -> int:
    return 1 if sum(table(workshop.results, real, [suite.name for suite in REAL[real]]) for real in REAL) else 0


if __name__ == "__main__":
    sys.exit(main())
