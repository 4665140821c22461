"""Two dumps in, the sentences that tell how they differ out: what must be there, and what is."""

from collections.abc import Iterable
from typing import Any

from tests.crash.model import Dump
from tests.crash.records import make

MOST = 12  # sentences; one difference usually makes many


def differences(expected: Dump, found: Dump) -> list[str]:
    """`expected` is the model's dump, `found` the broker's. None if the list is empty."""
    out: list[str] = []
    for what in ("namespaces", "cursors", "delayed"):
        if expected[what] != found[what]:
            out.append(f"{what}: expected {_brief(expected[what], found[what])}")
    _compare_named("queue", expected["queues"], found["queues"], _queue, out)
    _compare_named("topic", expected["topics"], found["topics"], _topic, out)
    return out[:MOST]


def _compare_named(what: str, expected: Dump, found: Dump, compare: Any, out: list[str]) -> None:
    for name in sorted(expected.keys() | found.keys()):
        if name not in found:
            out.append(f"{what} {name} is missing")
        elif name not in expected:
            out.append(f"{what} {name} should not be there")
        else:
            out += [f"{what} {name}: {line}" for line in compare(expected[name], found[name])]


def _queue(expected: Dump, found: Dump) -> Iterable[str]:
    if expected["live"] != found["live"]:
        yield _sequences("messages", expected["live"], found["live"])
    for what in ("counts", "next", "depth", "ready"):
        if expected[what] != found[what]:
            yield f"{what}: expected {expected[what]}, found {found[what]}"
    yield from found.get("trouble", ())


def _topic(expected: Dump, found: Dump) -> Iterable[str]:
    if expected["settings"] != found["settings"]:
        yield f"settings: expected {expected['settings']}, found {found['settings']}"
    if len(expected["partitions"]) != len(found["partitions"]):
        yield f"expected {len(expected['partitions'])} partitions, found {len(found['partitions'])}"
    for number, (want, have) in enumerate(zip(expected["partitions"], found["partitions"], strict=False)):
        for what in ("start", "end", "stable", "aborted"):
            if want[what] != have[what]:
                yield f"partition {number}: {what} should be {want[what]}, is {have[what]}"
        if expected["compacted"]:
            yield from (f"partition {number}: {line}" for line in _compacted(want["records"], have["records"]))
        elif want["records"] != have["records"]:
            yield f"partition {number}: " + _sequences("records", want["records"], have["records"])
        yield from (f"partition {number}: {line}" for line in have.get("trouble", ()))


def _compacted(expected: list[Any], found: list[Any]) -> Iterable[str]:
    """Everything found was written; of what was written, the newest of each key is there, tombstones may be gone."""
    if [record[0] for record in found] != sorted({record[0] for record in found}):
        yield f"offsets do not rise: {[record[0] for record in found]}"
    wanted = {record[0]: record for record in expected}
    for record in found:
        if wanted.get(record[0]) != record:
            yield f"record {record} is not what was written, {wanted.get(record[0])}"
    newest: dict[bytes | None, Any] = {}
    for record in expected:
        newest[make(record[1], record[2], keyed=True).key] = record
    there = {record[0] for record in found}
    for key, record in newest.items():
        if record[0] not in there and make(record[1], record[2], keyed=True).value is not None:
            yield f"the newest record of key {key!r}, {record}, is missing"


def _sequences(what: str, expected: list[Any], found: list[Any]) -> str:
    wanted, have = set(expected), set(found)
    missing = [item for item in expected if item not in have]
    extra = [item for item in found if item not in wanted]
    if not missing and not extra:
        return f"{what} are in another order or come twice: expected {expected[:20]}, found {found[:20]}"
    parts = []
    if missing:
        parts.append(f"{len(missing)} missing, from {missing[:5]}")
    if extra:
        parts.append(f"{len(extra)} too many, from {extra[:5]}")
    return f"{what} (offset, number, time): {'; '.join(parts)} (of {len(expected)} expected, {len(found)} found)"


def _brief(expected: Any, found: Any) -> str:
    if isinstance(expected, dict) and isinstance(found, dict):
        keys = [key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)]
        expected = {key: expected.get(key) for key in sorted(keys, key=str)}
        found = {key: found.get(key) for key in sorted(keys, key=str)}
    return f"{expected}, found {found}"
