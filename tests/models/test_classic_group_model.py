"""Classic groups under any order of what members do, well or badly, and of time.

Each question gets one answer, sooner or later. Who is told of a generation is told the same as the others: the
protocol, the leader, and, if it leads, who is in it. Generations never go back. Only who is in the generation sets
cursors. When all do as they should, the group is soon stable, and each has what the leader said; once nobody is heard
of any more it is empty, and no call to come is left over.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from interlog.core.group_words import GroupState, Join, Joined, Leaving, Refused, Sync, Synced
from interlog.core.groups import GroupSettings
from tests.unit.group_rig import Rig

SESSION_MS, REBALANCE_MS, NEW_MEMBER_MS, MOST = 10_000, 20_000, 30_000, 4
PICK = st.integers(0, 1000)
PROTOCOLS: Sequence[tuple[str, ...]] = (("range",), ("range", "sticky"), ("sticky", "range"), ("sticky",), ())
INSTANCES = (None, None, "one", "one", "two")


@dataclass
class Client:
    member: str = ""
    generation: int = -1
    instance: str | None = None


@dataclass
class Question:
    client: Client
    answers: list[Any] = field(default_factory=list)


@dataclass
class Generation:
    """What its members were told of it."""

    protocol: str | None
    leader: str
    told: set[str] = field(default_factory=set)
    members: set[str] = field(default_factory=set)  # as the leader was told
    assigned: dict[str, bytes] = field(default_factory=dict)


class ClassicGroupMachine(RuleBasedStateMachine):
    @initialize(delay_ms=st.sampled_from([0, 0, 3_000]))
    def begin(self, delay_ms: int) -> None:
        self.rig = Rig(GroupSettings(rebalance_delay_ms=delay_ms, new_member_ms=NEW_MEMBER_MS, members=MOST))
        self.topic = self.rig.topic("t", 1)
        self.clients: list[Client] = []
        self.questions: list[Question] = []
        self.generations: dict[int, Generation] = {}
        self.newest = 0

    def ask(self, client: Client, send: Callable[[Callable[[Any], None]], None], take: Callable[[Any], None]) -> None:
        question = Question(client)
        self.questions.append(question)

        def answered(answer: Any) -> None:
            question.answers.append(answer)
            assert len(question.answers) == 1, question
            take(answer)

        send(answered)

    # -- what members do

    @rule(instance=st.sampled_from(INSTANCES), protocols=st.sampled_from(PROTOCOLS), kind=st.sampled_from("ccccx"))
    def a_new_one_joins(self, instance: str | None, protocols: tuple[str, ...], kind: str) -> None:
        client = Client(instance=instance)
        self.clients.append(client)
        self._join(client, protocols, kind)

    @rule(pick=PICK, protocols=st.sampled_from(PROTOCOLS))
    def joins_again(self, pick: int, protocols: tuple[str, ...]) -> None:
        if self.clients:
            self._join(self.clients[pick % len(self.clients)], protocols, "c")

    def _join(self, client: Client, protocols: tuple[str, ...], kind: str) -> None:
        told = tuple((name, name.encode()) for name in protocols)
        needs_id = client.instance is None
        ask = Join(client.member, kind, told, SESSION_MS, REBALANCE_MS, client.instance, "c", "h", needs_id)
        self.ask(
            client,
            lambda answered: self.rig.groups.join("/", "g", ask, answered),
            lambda joined: self._joined(client, joined),
        )

    def _joined(self, client: Client, joined: Joined) -> None:
        if joined.refused is Refused.NEEDS_ID:
            client.member = joined.member
        elif joined.refused in (Refused.UNKNOWN_MEMBER, Refused.FENCED_INSTANCE):
            client.member, client.generation = "", -1
        if joined.refused is not None:
            return
        client.member, client.generation = joined.member, joined.generation
        told = self.generations.setdefault(joined.generation, Generation(joined.protocol, joined.leader))
        assert joined.protocol == told.protocol
        told.told.add(joined.member)
        if joined.members:
            # A static leader that is back leads under another id.
            assert joined.leader == joined.member
            told.leader = joined.leader
            told.members = {one.member for one in joined.members}
            assert joined.member in told.members
            assert all(one.metadata == (joined.protocol or "").encode() for one in joined.members)

    @rule(pick=PICK, right=st.booleans())
    def syncs(self, pick: int, right: bool) -> None:
        if not self.clients:
            return
        client = self.clients[pick % len(self.clients)]
        self._sync(client, client.generation if right else client.generation - 1)

    def _sync(self, client: Client, generation: int) -> None:
        told = self.generations.get(generation)
        assignments: tuple[tuple[str, bytes], ...] = ()
        if told is not None and told.leader == client.member:
            assignments = tuple((name, f"{generation} {name}".encode()) for name in sorted(told.members))
        ask = Sync(client.member, generation, client.instance, assignments=assignments)
        self.ask(
            client,
            lambda answered: self.rig.groups.sync("/", "g", ask, answered),
            lambda synced: self._synced(client, generation, synced),
        )

    def _synced(self, client: Client, generation: int, synced: Synced) -> None:
        if synced.refused is None:
            assert synced.protocol == self.generations[generation].protocol
            assert not synced.assignment or synced.assignment.startswith(f"{generation} ".encode())

    @rule(pick=PICK)
    def beats(self, pick: int) -> None:
        if not self.clients:
            return
        client = self.clients[pick % len(self.clients)]
        self.rig.groups.heartbeat("/", "g", client.member, client.instance, client.generation)

    @rule(pick=PICK, by_instance=st.booleans())
    def leaves(self, pick: int, by_instance: bool) -> None:
        if not self.clients:
            return
        client = self.clients[pick % len(self.clients)]
        leaving = Leaving("" if by_instance else client.member, client.instance if by_instance else None)
        self.rig.groups.leave("/", "g", [leaving])

    @rule(pick=PICK, off=st.sampled_from([0, 0, 1, -1]))
    def sets_a_cursor(self, pick: int, off: int) -> None:
        """Only in the present generation, and not while it is shared out."""
        if not self.clients:
            return
        client = self.clients[pick % len(self.clients)]
        view = self.rig.groups.view("/", "g")
        refused = self.rig.groups.check("/", "g", client.member, client.instance, client.generation + off)
        if refused is None and view is not None and view.members:
            assert client.generation + off == view.generation
            assert view.state in (GroupState.STABLE, GroupState.PREPARING)
            assert client.member in {member.member for member in view.members}

    @rule()
    def is_deleted(self) -> None:
        view = self.rig.groups.view("/", "g")
        refused = self.rig.groups.delete("/", "g")
        if view is not None and view.state is not GroupState.EMPTY:
            assert refused is Refused.NOT_EMPTY
        else:
            assert refused in (None, Refused.NOT_FOUND)
            self.newest = 0
            self.generations.clear()

    @rule(ms=st.sampled_from([1, 2_999, 5_000, SESSION_MS, REBALANCE_MS]))
    def time_passes(self, ms: int) -> None:
        self.rig.advance(ms)

    @rule()
    def all_do_as_they_should(self) -> None:
        for _ in range(8):
            for client in self._there():
                waits = any(one.client is client and not one.answers for one in self.questions)
                view = self.rig.groups.view("/", "g")
                assert view is not None
                if waits:
                    continue
                if client.generation != view.generation or view.state is GroupState.PREPARING:
                    self._join(client, ("range", "sticky"), "c")
                elif view.state is GroupState.COMPLETING:
                    self._sync(client, client.generation)
                else:
                    self.rig.groups.heartbeat("/", "g", client.member, client.instance, client.generation)
            self.rig.advance(REBALANCE_MS // 4)
        view = self.rig.groups.view("/", "g")
        if view is None or not view.members:
            return
        there = {client.member: client for client in self._there()}
        assert there.keys() == {member.member for member in view.members}
        assert view.state is GroupState.STABLE
        for member in view.members:
            # A static member that is back has what it had, which was for its former id.
            name = "" if member.instance is not None else member.member
            assert member.assignment.startswith(f"{view.generation} {name}".encode())
        for _ in range(6):
            for client in there.values():
                assert not self.rig.groups.heartbeat("/", "g", client.member, client.instance, client.generation)
            self.rig.advance(SESSION_MS - 1)
        assert self.rig.groups.view("/", "g") == view

    def _there(self) -> list[Client]:
        view = self.rig.groups.view("/", "g")
        members = set() if view is None else {member.member for member in view.members}
        return [client for client in self.clients if client.member in members]

    @rule()
    def nobody_is_heard_of_any_more(self) -> None:
        for _ in range(6):
            self.rig.advance(REBALANCE_MS + SESSION_MS + NEW_MEMBER_MS)
        unanswered = [question for question in self.questions if not question.answers]
        assert not unanswered
        view = self.rig.groups.view("/", "g")
        assert view is None or view.state is GroupState.EMPTY
        assert not len(self.rig.deadlines), "calls are left over"
        self.questions.clear()

    # -- always

    @invariant()
    def it_fits_together(self) -> None:
        if not hasattr(self, "rig"):
            return
        view = self.rig.groups.view("/", "g")
        if view is None:
            self.newest = 0
            self.generations.clear()
            return
        assert view.generation >= self.newest
        self.newest = view.generation
        assert len(view.members) <= MOST + len(INSTANCES)
        assert (view.state is GroupState.EMPTY) <= (not view.members)
        told = self.generations.get(view.generation)
        if view.state is GroupState.STABLE:
            assert told is not None
            assert view.protocol == told.protocol
            for member in view.members:
                assert member.metadata == view.protocol.encode()
        instances = [member.instance for member in view.members if member.instance is not None]
        assert len(instances) == len(set(instances))


TestClassicGroup = ClassicGroupMachine.TestCase
TestClassicGroup.settings = settings(max_examples=120, stateful_step_count=40)
