"""Quotas: how much a client may send, fetch, have computed and change, before it is made to wait.

    toll = quotas.toll(user, client_id)      # None: nothing holds it back
    toll.charge_produced(size)
    toll.throttle_ms                         # what its answer says, and how long nothing more of it is read

A rule is an object of the catalog (kind "kafka_quota") in the namespace that Kafka clients see. The one that fits a
client best counts, each key for itself. Clients that a rule tells apart are counted apart: by user and client id, by
user, or by client id. What was counted is forgotten when the broker stops.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from interlog.base.clock import Clock
from interlog.base.errors import LimitError
from interlog.core.catalog import Catalog
from interlog.core.catalog_objects import Change, ObjectItem, What, dump
from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.quota_rates import WINDOW_S, WINDOWS, Bucket, Meter, Rate
from interlog.faces.kafka.quota_rules import OF_CLIENTS, Entity, Key, Of

KIND: Final = "kafka_quota"
ANONYMOUS: Final = "ANONYMOUS"  # who has not said who it is
MOST_RULES: Final = 20_000
MOST_KEPT: Final = 10_000  # clients and meters, each

_Sharers = tuple[str, str, str]  # key, user, client id or address


class Limit:
    """So much in a second, and the meter it is measured with."""

    __slots__ = ("meter", "most")

    def __init__(self, most: float, meter: Meter) -> None:
        self.most = most
        self.meter = meter


Limits = Mapping[Key, Limit]


class Toll:
    """What one request costs. It begins when the request is taken up."""

    __slots__ = ("_began_s", "_clock", "_limits", "_timed", "throttle_ms")

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._began_s = clock.monotonic()
        self._timed = False
        self.throttle_ms = 0

    def charge_produced(self, bytes: int) -> None:
        self._charge(Key.PRODUCE, bytes)

    def charge_fetched(self, bytes: int) -> None:
        self._charge(Key.FETCH, bytes)

    def _charge(self, key: Key, amount: float) -> None:
        limit = self._limits.get(key)
        if limit is not None:
            self._wait(limit.meter.add(amount, limit.most, self._clock.monotonic()))

    def charge_time(self) -> None:
        """The time since it began, once; nobody waits longer than a window for that."""
        limit = self._limits.get(Key.REQUEST)
        if limit is None or self._timed:
            return
        self._timed = True
        now_s = self._clock.monotonic()
        self._wait(min(limit.meter.add((now_s - self._began_s) * 100, limit.most, now_s), WINDOW_S * 1000))

    def charge_mutation(self, partitions: int, *, strict: bool) -> None:
        """Partitions are to be made or deleted. `strict`: an error, and nothing counted, if there were too many."""
        limit = self._limits.get(Key.MUTATION)
        if limit is not None and strict:
            assert isinstance(limit.meter, Bucket)
            wait_ms = limit.meter.wait_ms(limit.most, self._clock.monotonic())
            if wait_ms > 0:
                self._wait(wait_ms)
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")
            limit.meter.add(partitions, limit.most, self._clock.monotonic())
        else:
            self._charge(Key.MUTATION, partitions)

    def most_fetched(self) -> int:
        """The most that one answer may hold without being more than is allowed in all windows."""
        limit = self._limits.get(Key.FETCH)
        return 1 << 62 if limit is None else int(limit.most * (WINDOWS - 1) * WINDOW_S)

    def _wait(self, ms: float) -> None:
        self.throttle_ms = max(self.throttle_ms, min(round(ms), (1 << 31) - 1))


class Quotas:
    """All rules of one namespace, and what they measure."""

    def __init__(self, catalog: Catalog, namespace: str, clock: Clock) -> None:
        self._catalog = catalog
        self._namespace = namespace
        self._clock = clock
        self._rules: dict[Entity, Mapping[str, float]] = {}
        self._limits: dict[tuple[str, str], Limits] = {}  # by user and client id
        self._meters: dict[_Sharers, Limit] = {}
        for item in catalog.objects(KIND, namespace):
            self._put(item)
        self.active = bool(self._rules)  # while there are none, nobody pays for them
        catalog.observe(self._changed)

    def close(self) -> None:
        self._catalog.forget(self._changed)

    def __iter__(self) -> Iterator[tuple[Entity, Mapping[str, float]]]:
        return iter(self._rules.items())

    def of(self, entity: Entity) -> Mapping[str, float]:
        return self._rules.get(entity, {})

    def keep(self, entity: Entity, values: Mapping[str, float]) -> None:
        """Put these in place of all that is set for the entity."""
        name = dump(entity)
        if values == self.of(entity):
            return
        if not values:
            self._catalog.discard(KIND, self._namespace, name)
            return
        if entity not in self._rules and len(self._rules) >= MOST_RULES:
            raise LimitError(f"there cannot be more than {MOST_RULES} quotas")
        self._catalog.put(KIND, self._namespace, name, {"entity": list(entity), "values": dict(values)})

    # -- asked

    def toll(self, user: str, client_id: str) -> Toll | None:
        limits = self._limits.get((user, client_id))
        if limits is None:
            if len(self._limits) >= MOST_KEPT:
                self._limits.clear()
            limits = self._limits[user, client_id] = self._limits_of(user or ANONYMOUS, client_id)
        return Toll(limits, self._clock) if limits else None

    def connection_ms(self, address: str) -> int:
        """There is a new connection; how long it has to wait."""
        for name in (address, None):
            most = self.of(((Of.IP, name),)).get(Key.CONNECTION)
            if most is not None:
                limit = self._limit(Key.CONNECTION, most, ("", address))
                return round(limit.meter.add(1, most, self._clock.monotonic()))
        return 0

    def _limits_of(self, user: str, client_id: str) -> Limits:
        found: dict[Key, Limit] = {}
        for entity, sharers in _places(user, client_id):
            values = self._rules.get(entity, {})
            for key in OF_CLIENTS:
                if key in values and key not in found:
                    found[key] = self._limit(key, values[key], sharers)
        return found

    def _limit(self, key: Key, most: float, sharers: tuple[str, str]) -> Limit:
        whose = (key, *sharers)
        limit = self._meters.get(whose)
        if limit is None:
            if len(self._meters) >= MOST_KEPT:
                self._sweep()
            limit = self._meters[whose] = Limit(most, Bucket() if key is Key.MUTATION else Rate())
        limit.most = most
        return limit

    def _sweep(self) -> None:
        """Forget the idle ones; all of them, if too few are."""
        now_s = self._clock.monotonic()
        self._limits.clear()
        self._meters = {
            whose: limit for whose, limit in self._meters.items() if not limit.meter.is_idle(limit.most, now_s)
        }
        if len(self._meters) > MOST_KEPT // 2:
            self._meters.clear()

    # -- told by the catalog

    def _changed(self, change: Change) -> None:
        item = change.item
        if isinstance(item, ObjectItem) and item.kind == KIND and item.namespace == self._namespace:
            if change.what is What.REMOVED:
                self._rules.pop(_entity(item), None)
            else:
                self._put(item)
            self._limits.clear()
            self.active = bool(self._rules)

    def _put(self, item: ObjectItem) -> None:
        self._rules[_entity(item)] = item.value["values"]


def _entity(item: ObjectItem) -> Entity:
    return tuple((type, name) for type, name in item.value["entity"])


def _places(user: str, client_id: str) -> Iterator[tuple[Entity, tuple[str, str]]]:
    """Where a rule for it may be, the best first, and who shares its meter."""
    for whose in (user, None):
        for client in (client_id, None):
            yield ((Of.CLIENT_ID, client), (Of.USER, whose)), (user, client_id)
        yield ((Of.USER, whose),), (user, "")
    for client in (client_id, None):
        yield ((Of.CLIENT_ID, client),), ("", client_id)
