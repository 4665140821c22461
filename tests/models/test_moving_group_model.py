"""A group with members of both kinds, that come and go in any order: it moves to the newer kind and back meanwhile.

A partition is read by one member at a time, as far as the members are in the group. When all do as they are told, the
group comes to rest, and each partition is read; and it is of the newer kind just as long as somebody of that kind is
in it. In one group those of the classic kind either all give up everything before they join again, or none does.
"""

import json
from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from interlog.base.errors import InvalidError
from interlog.core.group_words import (
    LEAVES,
    GroupKind,
    Heartbeat,
    Join,
    Joined,
    Leaving,
    Refused,
    Sync,
    Synced,
)
from interlog.core.groups import Groups, GroupSettings
from tests.unit.group_rig import Rig

SESSION_MS, REBALANCE_MS = 10_000, 15_000
PICKS = st.lists(st.integers(0, 1000), min_size=1, max_size=12)
NOTHING: frozenset[int] = frozenset()


class Words:
    """Subscriptions and assignments as JSON."""

    type = "consumer"

    def wants(self, metadata: bytes) -> tuple[frozenset[str], frozenset[int]]:
        if not metadata:
            raise InvalidError("nothing is said")
        topics, owned = json.loads(metadata)
        return frozenset(topics), frozenset(owned)

    def assigned(self, assignment: bytes) -> frozenset[int]:
        return frozenset(json.loads(assignment))

    def assignment(self, partitions: frozenset[int]) -> bytes:
        return json.dumps(sorted(partitions)).encode()


@dataclass(eq=False)
class Newer:
    groups: Groups
    name: str
    epoch: int = 0
    reads: frozenset[int] = NOTHING
    told: frozenset[int] = NOTHING

    def step(self) -> None:
        self.reads = self.told
        joins = self.epoch == 0
        topics = frozenset(("t",)) if joins else None
        ask = Heartbeat(
            self.name, self.epoch, lambda name: True, topics=topics, owned=self.reads, rebalance_ms=REBALANCE_MS
        )
        standing = self.groups.follow("/", "g", ask)
        if standing.refused is not None:
            self.epoch, self.reads, self.told = 0, NOTHING, NOTHING
            return
        self.epoch = standing.epoch
        if standing.assigned is not None:
            self.told = standing.assigned

    def leave(self) -> None:
        self.groups.follow("/", "g", Heartbeat(self.name, LEAVES, lambda name: True))


class Classic:
    """`step` is one thing that a client does next; while it waits for an answer that is nothing."""

    def __init__(self, groups: Groups, partitions: tuple[int, ...], *, cooperative: bool) -> None:
        self.groups = groups
        self.partitions = partitions
        self.cooperative = cooperative
        self.name = ""
        self.generation = -1
        self.reads = NOTHING
        self.asked = 0  # answers to older questions are not listened to
        self.waits = False
        self.joined: Joined | None = None  # and has not synced

    def step(self) -> None:
        if self.waits:
            return
        if self.generation < 0:
            self.join()
        elif self.joined is not None:
            self.sync(self.joined)
        else:
            refused = self.groups.heartbeat("/", "g", self.name, None, self.generation)
            if refused is Refused.REBALANCING:
                self.join()
            elif refused is not None:
                self.lost(refused)

    def lost(self, refused: Refused) -> None:
        """It is not in the group as it thought: it reads nothing, and begins anew."""
        if refused is Refused.UNKNOWN_MEMBER:
            self.name = ""
        self.generation, self.reads, self.joined = -1, NOTHING, None

    def join(self) -> None:
        if not self.cooperative:
            self.reads = NOTHING
        self.asked += 1
        number = self.asked
        self.waits, self.joined = True, None
        metadata = json.dumps([["t"], sorted(self.reads)]).encode()
        ask = Join(self.name, "consumer", (("p", metadata),), SESSION_MS, REBALANCE_MS, client_id="c", needs_id=True)
        self.groups.join("/", "g", ask, lambda joined: self.on_joined(joined) if number == self.asked else None)

    def on_joined(self, joined: Joined) -> None:
        self.waits = False
        if joined.refused is Refused.NEEDS_ID:
            self.name = joined.member
        elif joined.refused is Refused.REBALANCING:
            self.generation = -1  # it asks again, and goes on reading
        elif joined.refused is not None:
            self.lost(joined.refused)
        else:
            self.name, self.generation, self.joined = joined.member, joined.generation, joined

    def sync(self, joined: Joined) -> None:
        self.waits, self.joined = True, None
        shares = self.share(joined) if joined.leader == self.name else ()
        self.groups.sync("/", "g", Sync(self.name, self.generation, assignments=shares), self.on_synced)

    def share(self, joined: Joined) -> tuple[tuple[str, bytes], ...]:
        """In turns; what another one still reads is nobody's in this round."""
        members = sorted(joined.members)
        owned = {one.member: frozenset(json.loads(one.metadata)[1]) for one in members}
        shares: dict[str, list[int]] = {one.member: [] for one in members}
        for number, partition in enumerate(self.partitions):
            name = members[number % len(members)].member
            if not any(partition in held for other, held in owned.items() if other != name):
                shares[name].append(partition)
        return tuple((name, json.dumps(share).encode()) for name, share in shares.items())

    def on_synced(self, synced: Synced) -> None:
        self.waits = False
        if synced.refused is Refused.REBALANCING:
            self.join()
        elif synced.refused is not None:
            self.lost(synced.refused)
        else:
            told = frozenset(json.loads(synced.assignment or b"[]"))
            gave_up = self.reads - told
            self.reads = told
            if gave_up and self.cooperative:
                self.join()

    def leave(self) -> None:
        self.groups.leave("/", "g", [Leaving(self.name)])
        self.asked += 1


Client = Newer | Classic


class MovingGroupMachine(RuleBasedStateMachine):
    @initialize(count=st.integers(1, 5), cooperative=st.booleans())
    def begin(self, count: int, cooperative: bool) -> None:
        self.rig = Rig(GroupSettings(session_ms=SESSION_MS, members=5))
        self.rig.groups.guest_words = lambda namespace: Words()
        self.partitions = self.rig.topic("t", count)
        self.cooperative = cooperative
        self.clients: list[Client] = []
        self.named = 0

    @rule(newer=st.booleans())
    def comes(self, newer: bool) -> None:
        if len(self.clients) == 5:
            return
        self.named += 1
        if newer:
            self.clients.append(Newer(self.rig.groups, f"n{self.named}"))
        else:
            self.clients.append(Classic(self.rig.groups, self.partitions, cooperative=self.cooperative))
        self.clients[-1].step()

    @rule(picks=PICKS)
    def some_go_on(self, picks: list[int]) -> None:
        for pick in picks:
            if self.clients:
                self.clients[pick % len(self.clients)].step()
                self.rig.advance(1)
                self.one_reads()

    @rule(pick=st.integers(0, 1000))
    def one_leaves(self, pick: int) -> None:
        if self.clients:
            self.clients.pop(pick % len(self.clients)).leave()

    @rule(pick=st.integers(0, 1000))
    def one_is_never_heard_of_again(self, pick: int) -> None:
        if self.clients:
            gone = self.clients.pop(pick % len(self.clients))
            if isinstance(gone, Classic):
                gone.asked += 1

    @rule(ms=st.sampled_from([1, 3_000, SESSION_MS - 1, REBALANCE_MS]))
    def time_passes(self, ms: int) -> None:
        self.rig.advance(ms)
        # Who was put out finds out with its next step; until then what it reads is its own affair.

    @rule()
    def all_follow(self) -> None:
        for _ in range(30):
            for client in list(self.clients):
                client.step()
                self.one_reads()
            self.rig.advance(2_000)
        for _ in range(12):
            for client in list(self.clients):
                client.step()
        read = [partition for client in self.clients for partition in client.reads]
        assert sorted(read) == (sorted(self.partitions) if self.clients else [])
        view = self.rig.groups.view("/", "g")
        if view is None or not self.clients:
            return
        assert {member.member for member in view.members} == {client.name for client in self.clients}
        newer = any(isinstance(client, Newer) for client in self.clients)
        assert view.kind is (GroupKind.BALANCED if newer else GroupKind.CLASSIC)

    @invariant()
    def one_reads(self) -> None:
        if not hasattr(self, "rig"):
            return
        view = self.rig.groups.view("/", "g")
        there = set() if view is None else {member.member for member in view.members}
        read = [partition for client in self.clients if client.name in there for partition in client.reads]
        assert len(read) == len(set(read)), "two read the same"


MovingGroupMachine.TestCase.settings = settings(max_examples=300, stateful_step_count=30, deadline=None)
TestMovingGroup = MovingGroupMachine.TestCase
