"""What routing costs: microseconds of CPU a route, a bind, an unbind; bytes a binding; with few and with many others.

python3 dev.py bench routing [--quick]
"""

import argparse
import gc
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from interlog.core.catalog import Catalog
from interlog.core.exchanges import Exchanges

Bindings = Sequence[tuple[str, str, Mapping[str, Any]]]  # queue, key, arguments


class NoStorage:
    """Takes every entry and keeps none."""

    def add(self, kind: int, target: int, payload: bytes) -> None:
        pass

    def create_partition(self, partition: int) -> None:
        pass

    drop_partition = create_partition


def best(act: Callable[[], object], count: int, rounds: int = 5) -> float:
    """Microseconds for one, in the best of some rounds."""
    spent = []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(count):
            act()
        spent.append(time.process_time() - start)
    return min(spent) / count * 1e6


def bindings_of(kind: str, queues: int, count: int) -> Bindings:
    """As a user of the kind would have them: every queue with keys of its own, some of them shared."""
    found = []
    for number in range(count):
        queue = f"queue-{number % queues}"
        site, sensor = number % 500, number // 500
        key: str = {
            "direct": f"site{site}.sensor{sensor}",
            "topic": f"site{site}.sensor{sensor}.value",
            "wildcards": f"site{site}.*.sensor{sensor}.#",
            "headers": "",
            "fanout": str(number // queues),
            "consistent-hash": "1",
        }[kind]
        arguments = {"site": site, "sensor": sensor, "x-match": "all"} if kind == "headers" else {}
        found.append((queue, key, arguments))
    return found


def measure(kind: str, queues: int, count: int, keys: tuple[str, ...], headers: Mapping[str, Any]) -> None:
    gc.collect()
    tracemalloc.start()
    catalog = Catalog(NoStorage())
    exchanges = Exchanges(catalog)
    for number in range(queues):
        catalog.create_queue("/", f"queue-{number}")
    exchanges.declare("/", "e", "topic" if kind == "wildcards" else kind)
    bindings = bindings_of(kind, queues, count)
    before, _ = tracemalloc.get_traced_memory()
    for queue, key, arguments in bindings:
        exchanges.bind("/", "e", queue, key, arguments)
    catalog.take_changes()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    def route() -> int:
        return len(exchanges.route("/", "e", keys, lambda: headers).queues)

    def bind_and_unbind() -> None:
        exchanges.bind("/", "e", "queue-0", "7", {"one": "more"})
        exchanges.unbind("/", "e", "queue-0", "7", {"one": "more"})

    reached = route()
    route_us = best(route, max(2_000 // reached, 3) if reached > 10 else 10_000)
    pair_us = best(bind_and_unbind, 1_000)
    again = Exchanges(catalog)
    start = time.process_time()
    again.route("/", "e", keys, lambda: headers)
    made_ms = (time.process_time() - start) * 1e3
    held = (after - before) / count
    row = f"{kind:<16}{queues:>8,}{count:>10,}{reached:>9,}{route_us:>11.2f}{pair_us:>13.1f}"
    print(f"{row}{held:>12.0f}{made_ms:>12.1f}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything: to see that it works")
    quick = parser.parse_args().quick
    queues, count = (500, 5_000) if quick else (5_000, 50_000)
    head = f"{'exchange':<16}{'queues':>8}{'bindings':>10}{'reached':>9}{'route µs':>11}{'bind+un µs':>13}"
    print(f"{head}{'B/binding':>12}{'rebuild ms':>12}")
    said = {"site": 3, "sensor": 4, "other": "x", "more": 1.5}
    for many in (10, count):
        some = min(many, queues)
        measure("direct", some, many, ("site3.sensor0",), {})
        measure("topic", some, many, ("site3.sensor0.value",), {})
        measure("wildcards", some, many, ("site3.room.sensor0.value.max",), {})
        measure("headers", some, many, ("",), said | {"sensor": 0})
    measure("fanout", 10, 10, ("",), {})
    measure("fanout", queues, queues, ("",), {})
    measure("fanout", queues, count, ("",), {})
    measure("consistent-hash", 10, 10, ("some key",), {})
    measure("consistent-hash", queues, queues, ("some key",), {})

    catalog = Catalog(NoStorage())
    exchanges = Exchanges(catalog)
    for number in range(queues):
        catalog.create_queue("/", f"queue-{number}")
    keys = ("queue-7",)
    print(
        f"\ndefault exchange, {queues:,} queues: {best(lambda: exchanges.route('/', '', keys), 10_000):.2f} µs a route"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
