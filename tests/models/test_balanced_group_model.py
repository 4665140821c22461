"""Balanced groups under any order of what members do, at their own pace, of topics that come and go, and of time.

A partition is read by one member at a time, as far as the members are in the group; each reads only what it asked for;
epochs never go back. When all follow, the group soon comes to rest, and each partition that somebody wants is read.
"""

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from interlog.base.errors import InterlogError
from interlog.core.catalog_objects import TopicItem
from interlog.core.group_words import GroupState, GroupView, Heartbeat, Refused, Standing
from interlog.core.groups import GroupSettings
from tests.unit.group_rig import Rig

SESSION_MS, REBALANCE_MS, MOST = 10_000, 15_000, 4
PICK = st.integers(0, 1000)
BOTH = frozenset(("t1", "t2"))
TOPICS = st.sampled_from([BOTH, BOTH, BOTH, frozenset(("t1",)), frozenset(("t2", "other")), frozenset[str]()])
BEATS = st.lists(st.tuples(PICK, st.booleans(), st.sampled_from([True, True, True, False])), min_size=1, max_size=10)
PATTERNS = st.sampled_from(["t.*", "other", "x"])


@dataclass(eq=False)
class Client:
    name: str
    instance: str | None = None
    epoch: int = 0
    reads: frozenset[int] = frozenset()
    told: frozenset[int] = frozenset()


class BalancedGroupMachine(RuleBasedStateMachine):
    @initialize(counts=st.tuples(st.integers(1, 5), st.integers(1, 5)))
    def begin(self, counts: tuple[int, int]) -> None:
        self.rig = Rig(GroupSettings(session_ms=SESSION_MS, members=MOST))
        self.rig.topic("t1", counts[0])
        self.rig.topic("t2", counts[1])
        self.clients: list[Client] = []
        self.named = 0
        self.epochs: dict[str, int] = {}
        self.group_epoch = 0

    # -- members

    @rule(
        instance=st.sampled_from([None, None, None, "one", "two"]),
        topics=TOPICS,
        pattern=st.none() | PATTERNS,
        assignor=st.sampled_from([None, None, "range", "uniform"]),
    )
    def joins(self, instance: str | None, topics: frozenset[str], pattern: str | None, assignor: str | None) -> None:
        self.named += 1
        client = Client(f"m{self.named}", instance)
        self.beat(client, topics=topics, pattern=pattern, assignor=assignor, rebalance_ms=REBALANCE_MS)
        if client.epoch:
            self.clients.append(client)

    def beat(self, client: Client, **more: object) -> Standing:
        ask = Heartbeat(
            client.name,
            client.epoch,
            may_read=lambda name: name != "other",
            instance=client.instance,
            owned=client.reads,
            **more,  # type: ignore[arg-type]
        )
        standing = self.rig.groups.follow("/", "g", ask)
        if standing.refused is not None:
            if client in self.clients:
                self.clients.remove(client)
            return standing
        assert standing.epoch >= client.epoch
        client.epoch = standing.epoch
        if standing.assigned is not None:
            client.told = standing.assigned
        return standing

    @rule(beats=BEATS)
    def beat_now_and_then(self, beats: list[tuple[int, bool, bool]]) -> None:
        """They follow what they were told, those that do so yet; answers may be lost."""
        for pick, takes, heard in beats:
            if not self.clients:
                return
            client = self.clients[pick % len(self.clients)]
            if takes:
                client.reads = client.told
            before = client.epoch, client.told
            self.beat(client)
            if not heard:
                client.epoch, client.told = before
            self.it_fits_together()

    @rule(pick=PICK, topics=TOPICS, pattern=st.none() | PATTERNS)
    def wants_something_else(self, pick: int, topics: frozenset[str], pattern: str | None) -> None:
        if self.clients:
            self.beat(self.clients[pick % len(self.clients)], topics=topics, pattern=pattern)

    @rule(pick=PICK, off=st.sampled_from([-1, 1, 5]))
    def comes_with_another_epoch(self, pick: int, off: int) -> None:
        if not self.clients:
            return
        client = self.clients[pick % len(self.clients)]
        epoch = {member.member: member.epoch for member in self.view().members}[client.name] + off
        if epoch > 0:
            ask = Heartbeat(client.name, epoch, lambda name: True, instance=client.instance)
            assert self.rig.groups.follow("/", "g", ask).refused is Refused.FENCED_EPOCH

    @rule(pick=PICK, for_now=st.booleans())
    def leaves(self, pick: int, for_now: bool) -> None:
        if not self.clients:
            return
        client = self.clients.pop(pick % len(self.clients))
        epoch = -2 if for_now and client.instance is not None else -1
        self.rig.groups.follow("/", "g", Heartbeat(client.name, epoch, lambda name: True, instance=client.instance))

    @rule(pick=PICK, off=st.sampled_from([0, 0, 1, -1]))
    def sets_a_cursor(self, pick: int, off: int) -> None:
        if not self.clients:
            return
        client = self.clients[pick % len(self.clients)]
        there = {member.member: member.epoch for member in self.view().members}
        refused = self.rig.groups.check("/", "g", client.name, client.instance, client.epoch + off)
        assert (refused is None) == (there[client.name] == client.epoch + off)

    # -- topics and time

    @rule(name=st.sampled_from(["t1", "t2", "t3"]), count=st.integers(1, 6))
    def topic_changes(self, name: str, count: int) -> None:
        catalog = self.rig.catalog
        found = catalog.find("/", name)
        try:
            if found is None:
                catalog.create_topic("/", name, count)
            elif isinstance(found, TopicItem) and len(found.partitions) < count:
                catalog.grow_topic("/", name, count)
            else:
                catalog.remove("/", name)
        except InterlogError as error:
            raise AssertionError from error

    @rule(ms=st.sampled_from([1, 3_000, SESSION_MS - 1, REBALANCE_MS]))
    def time_passes(self, ms: int) -> None:
        self.rig.advance(ms)
        there = {member.member for member in self.view().members}
        self.clients = [client for client in self.clients if client.name in there]

    @rule()
    def all_follow(self) -> None:
        for _ in range(8):
            for client in list(self.clients):
                client.reads = client.told
                self.beat(client)
            self.rig.advance(2_000)
        # Who is away may be waited for.
        for _ in range(2):
            self.rig.advance(SESSION_MS // 2 + 1)
            for client in list(self.clients):
                self.beat(client)
        for _ in range(4):
            for client in list(self.clients):
                client.reads = client.told
                self.beat(client)
        view = self.view()
        assert {member.member for member in view.members} == {client.name for client in self.clients}
        if not view.members:
            return
        assert view.state is GroupState.STABLE
        wanted: set[int] = set()
        for item in self.rig.catalog.topics("/"):
            if any(self.wants(view, client.name, item.name) for client in self.clients):
                wanted.update(item.partitions)
        read = [partition for client in self.clients for partition in client.reads]
        assert sorted(read) == sorted(wanted)
        assert all(member.assigned == member.target for member in view.members)

    def wants(self, view: GroupView, name: str, topic: str) -> bool:
        (member,) = (member for member in view.members if member.member == name)
        fits = {"t.*": topic.startswith("t"), "other": False, "x": False, "": False}[member.pattern]
        return topic in member.topics or fits

    # -- always

    def view(self) -> GroupView:
        view = self.rig.groups.view("/", "g")
        return view if view is not None else GroupView("g", None, GroupState.EMPTY)  # type: ignore[arg-type]

    @invariant()
    def it_fits_together(self) -> None:
        if not hasattr(self, "rig"):
            return
        view = self.view()
        there = {member.member: member for member in view.members}
        readers = [client for client in self.clients if client.name in there]
        read = [partition for client in readers for partition in client.reads]
        assert len(read) == len(set(read)), "two read the same"
        assigned = [partition for member in view.members for partition in member.assigned]
        assert len(assigned) == len(set(assigned)), "two are given the same"
        assert len(view.members) <= MOST
        for member in view.members:
            assert member.epoch <= view.generation
        if not view.members:
            self.group_epoch = 0
        assert view.generation >= self.group_epoch
        self.group_epoch = view.generation


TestBalancedGroup = BalancedGroupMachine.TestCase
TestBalancedGroup.settings = settings(max_examples=120, stateful_step_count=40)
