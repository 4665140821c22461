"""A classic group: its members agree among themselves, by way of a leader, who reads what.

Comes in: joins, syncs, heartbeats, leaves, and the time. Goes out: an answer to each, at once or when all members have
come. A round goes so: somebody comes or goes, and all members must join again (PREPARING); once they have, or their
time is over, a generation begins, and all wait for what the leader assigns (COMPLETING); the leader's sync brings it
(STABLE). Members with an instance are static: they may be away for a while, and one with the same instance takes over
what the other had.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from interlog.base.errors import InterlogError
from interlog.core.deadlines import Deadline
from interlog.core.group_alarm import Alarm, Home
from interlog.core.group_words import (
    COMES_FROM,
    GroupKind,
    GroupState,
    GroupView,
    Join,
    Joined,
    JoinedMember,
    Leaving,
    MemberView,
    OnJoined,
    OnSynced,
    Refused,
    Sync,
    Synced,
)


class _Member:
    __slots__ = (
        "assignment",
        "client_id",
        "host",
        "id",
        "instance",
        "is_new",
        "joining",
        "protocols",
        "rebalance_ms",
        "session",
        "session_ms",
        "syncing",
    )

    def __init__(self, member: str, ask: Join, session: Alarm) -> None:
        self.id = member
        self.instance = ask.instance
        self.client_id = ask.client_id
        self.host = ask.host
        self.session = session
        self.assignment = b""
        self.is_new = True  # it was never told a generation
        self.joining: OnJoined | None = None
        self.syncing: OnSynced | None = None
        self.update(ask)

    def update(self, ask: Join) -> None:
        self.protocols = dict(ask.protocols)
        self.session_ms = ask.session_ms
        self.rebalance_ms = ask.rebalance_ms

    def answer_sync(self, synced: Synced) -> None:
        respond, self.syncing = self.syncing, None
        if respond is not None:
            respond(synced)


class ClassicGroup:
    kind = GroupKind.CLASSIC

    def __init__(self, name: str, home: Home) -> None:
        self.name = name
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type = ""
        self.protocol: str | None = None
        self.leader: str | None = None
        self.emptied_ms = home.clock.now_ms()
        self._home = home
        self._first_round = False  # of a group that was empty: it waits for more, and not for all
        self._came_meanwhile = False  # somebody did, in the first round
        self._members: dict[str, _Member] = {}
        self._instances: dict[str, str] = {}  # the member of each
        self._pending: dict[str, Alarm] = {}  # ids that were given, and whose members are to come with them
        self._unsynced: set[str] = set()
        self._joined_count = 0  # of the members, those who wait to be told a generation
        self._knowers: dict[str, int] = {}  # of each protocol
        self._join_due: Deadline | None = None
        self._sync_due: Deadline | None = None

    # -- asked

    @property
    def empty(self) -> bool:
        return self.state is GroupState.EMPTY

    @property
    def idle(self) -> bool:
        """Nobody is there, and nobody is about to come."""
        return self.state is GroupState.EMPTY and not self._pending and not self._members

    def view(self) -> GroupView:
        stable = self.state is GroupState.STABLE
        members = tuple(
            MemberView(
                member.id,
                member.instance,
                member.client_id,
                member.host,
                member.protocols.get(self.protocol or "", b"") if stable else b"",
                member.assignment if stable else b"",
            )
            for member in self._members.values()
        )
        protocol = self.protocol or "" if stable else ""
        return GroupView(self.name, self.kind, self.state, self.protocol_type, protocol, self.generation, 0, members)

    def metadata(self) -> list[bytes]:
        """What the members told of themselves for the protocol in use."""
        protocol = self.protocol or ""
        return [member.protocols[protocol] for member in self._members.values() if protocol in member.protocols]

    def check(
        self, member: str, instance: str | None, generation: int, *, transactional: bool, epochs: bool
    ) -> Refused | None:
        """Whether somebody may set cursors of the group."""
        if generation < 0 and self.empty:
            return None
        if generation >= 0 or member or instance is not None:
            refused = self._known(member, instance)
            if refused is not None:
                return refused
            if generation != self.generation:
                return Refused.ILLEGAL_GENERATION
        elif not transactional:
            return Refused.UNKNOWN_MEMBER
        if not transactional and self.state is GroupState.COMPLETING:
            return Refused.REBALANCING
        return None

    def touch(self, member: str) -> None:
        """It was heard of: its session goes on."""
        found = self._members.get(member)
        if found is not None and self.state in (GroupState.STABLE, GroupState.PREPARING):
            found.session.set(found.session_ms)

    def _known(self, member: str, instance: str | None) -> Refused | None:
        if instance is not None:
            owner = self._instances.get(instance)
            if owner is None:
                return Refused.UNKNOWN_MEMBER
            if owner != member:
                return Refused.FENCED_INSTANCE
        return None if member in self._members else Refused.UNKNOWN_MEMBER

    @property
    def _rebalance_ms(self) -> int:
        return max((member.rebalance_ms for member in self._members.values()), default=0)

    @property
    def _all_joined(self) -> bool:
        return not self._pending and self._joined_count == len(self._members)

    # -- joining

    def join(self, ask: Join, respond: OnJoined) -> None:
        if not self._has_room(ask.member):
            self._remove(ask.member)
            respond(Joined(Refused.FULL, ""))
        elif not self._agrees(ask):
            respond(Joined(Refused.INCONSISTENT_PROTOCOL, ask.member))
        elif not ask.member:
            self._join_new(ask, respond)
        elif ask.member in self._pending:
            if ask.instance is not None:
                respond(Joined(Refused.UNKNOWN_MEMBER, ask.member))
            else:
                self._add(ask.member, ask, respond)
        else:
            refused = self._known(ask.member, ask.instance)
            if refused is not None:
                respond(Joined(refused, ask.member))
            else:
                self._join_again(self._members[ask.member], ask, respond)

    def _has_room(self, member: str) -> bool:
        most = self._home.settings.members
        found = self._members.get(member)
        if self.state is GroupState.PREPARING:
            return (found is not None and found.joining is not None) or self._joined_count < most
        if not member and len(self._pending) >= most:
            return False
        return self.empty or found is not None or len(self._members) < most

    def _agrees(self, ask: Join) -> bool:
        if not ask.protocol_type or not ask.protocols:
            return False
        if self.empty or not self._members:
            return True
        if ask.protocol_type != self.protocol_type:
            return False
        return any(self._knowers.get(name) == len(self._members) for name, _ in ask.protocols)

    def _join_new(self, ask: Join, respond: OnJoined) -> None:
        made = self._home.new_id(ask.instance or ask.client_id)
        if ask.instance is not None:
            before = self._instances.get(ask.instance)
            if before is None:
                self._add(made, ask, respond)
            else:
                self._take_over(before, made, ask, respond)
        elif ask.needs_id:
            session = Alarm(self._home, lambda: self._expire(made))
            session.set(ask.session_ms)
            self._pending[made] = session
            respond(Joined(Refused.NEEDS_ID, made))
        else:
            self._add(made, ask, respond)

    def _join_again(self, member: _Member, ask: Join, respond: OnJoined) -> None:
        same = tuple(member.protocols.items()) == ask.protocols
        told = self.state is GroupState.COMPLETING or (self.state is GroupState.STABLE and member.id != self.leader)
        if told and same:
            respond(self._joined(member))
        elif self.state in (GroupState.PREPARING, GroupState.COMPLETING, GroupState.STABLE):
            self._update(member, ask, respond)
            self._prepare_or_complete()
        else:
            respond(Joined(Refused.UNKNOWN_MEMBER, ask.member))

    def _add(self, name: str, ask: Join, respond: OnJoined) -> None:
        pending = self._pending.pop(name, None)
        if pending is not None:
            pending.cancel()
        if not self._members:
            self.protocol_type = ask.protocol_type
        if self.state is GroupState.PREPARING and self._first_round:
            self._came_meanwhile = True
        member = _Member(name, ask, Alarm(self._home, lambda: self._expire(name)))
        self._put(member, respond)
        if self.leader is None:
            self.leader = name
        member.session.set(self._home.settings.new_member_ms)
        self._prepare_or_complete()

    def _update(self, member: _Member, ask: Join, respond: OnJoined) -> None:
        # Who asks again before it is told has given up its first question: the answer is to the newest.
        self._answer_join(member, Joined(Refused.REBALANCING, member.id))
        self._count(member, -1)
        member.update(ask)
        self._put(member, respond)

    def _put(self, member: _Member, respond: OnJoined) -> None:
        self._enter(member)
        member.joining = respond
        self._joined_count += 1

    def _enter(self, member: _Member) -> None:
        self._members[member.id] = member
        if member.instance is not None:
            self._instances[member.instance] = member.id
        self._count(member, 1)

    def _count(self, member: _Member, step: int) -> None:
        for name in member.protocols:
            self._knowers[name] = self._knowers.get(name, 0) + step
            if not self._knowers[name]:
                del self._knowers[name]

    def _answer_join(self, member: _Member, joined: Joined) -> None:
        respond, member.joining = member.joining, None
        if respond is not None:
            self._joined_count -= 1
            respond(joined)

    def _take_over(self, before: str, name: str, ask: Join, respond: OnJoined) -> None:
        """A static member is back, or there are two of it: the new one is in the place of the old one."""
        old = self._members.pop(before)
        self._count(old, -1)
        old.session.cancel()
        self._answer_join(old, Joined(Refused.FENCED_INSTANCE, before))
        old.answer_sync(Synced(Refused.FENCED_INSTANCE))
        member = _Member(name, ask, Alarm(self._home, lambda: self._expire(name)))
        member.assignment = old.assignment
        member.is_new = False
        self._put(member, respond)
        led, leads = self.leader, self.leader == before
        if leads:
            self.leader = name
        self._unsynced.discard(before)
        member.session.set(member.session_ms)
        if self.state is GroupState.STABLE:
            if self._select_protocol() != self.protocol:
                self._prepare_or_complete()
            elif ask.can_skip:
                self._answer_join(member, self._joined(member)._replace(skip=leads))
            else:
                # It must not know that it leads: it would assign, and nobody would listen.
                self._answer_join(member, self._joined(member)._replace(leader=led or "", members=()))
        elif self.state is GroupState.COMPLETING:
            self._prepare()
        else:
            self._complete_if_all_joined()

    def _joined(self, member: _Member) -> Joined:
        members: tuple[JoinedMember, ...] = ()
        if member.id == self.leader:
            members = tuple(
                JoinedMember(one.id, one.instance, one.protocols.get(self.protocol or "", b""))
                for one in self._members.values()
            )
        return Joined(
            None, member.id, self.generation, self.protocol_type, self.protocol, self.leader or "", members, False
        )

    # -- becoming another kind, and back

    def members(self) -> list[tuple[str, Join, bytes]]:
        """Who is in it, how each joined, and what it was assigned."""
        return [
            (
                member.id,
                Join(
                    member.id,
                    self.protocol_type,
                    tuple(member.protocols.items()),
                    member.session_ms,
                    member.rebalance_ms,
                    member.instance,
                    member.client_id,
                    member.host,
                ),
                member.assignment,
            )
            for member in self._members.values()
        ]

    def dissolve(self) -> None:
        """Its members are looked after elsewhere from now on: who waits is told to join again."""
        self._cancel_dues()
        for alarm in self._pending.values():
            alarm.cancel()
        for member in self._members.values():
            member.session.cancel()
            self._answer_join(member, Joined(Refused.REBALANCING, member.id))
            member.answer_sync(Synced(Refused.REBALANCING))
        self._go(GroupState.DEAD)

    def take_back(self, generation: int, members: Iterable[tuple[str, Join, bytes]]) -> None:
        """Into a new group: those whose balanced group has no other members left. All are to join again."""
        self.generation = generation
        for name, ask, assignment in members:
            self.protocol_type = ask.protocol_type
            member = _Member(name, ask, Alarm(self._home, partial(self._expire, name)))
            member.is_new = False
            member.assignment = assignment  # it reads that until it joins again, and the group may move before
            self._enter(member)
            member.session.set(member.session_ms)
        self._go(GroupState.PREPARING)
        self._join_due = self._home.deadlines.after(self._rebalance_ms, self._complete)

    # -- a round

    def _go(self, state: GroupState) -> None:
        if self.state not in COMES_FROM[state]:
            raise InterlogError(f"group {self.name} cannot go from {self.state.value} to {state.value}")
        self.state = state

    def _prepare_or_complete(self) -> None:
        if self.state in COMES_FROM[GroupState.PREPARING]:
            self._prepare()
        else:
            self._complete_if_all_joined()

    def _prepare(self) -> None:
        """All members must join again."""
        if self.state is GroupState.COMPLETING:
            for member in self._members.values():
                member.assignment = b""
                self._answer_sync(member, Synced(Refused.REBALANCING))
        self._unsynced.clear()
        self._cancel_dues()
        self._first_round = self.empty
        self._go(GroupState.PREPARING)
        if self._first_round:
            delay_ms = self._home.settings.rebalance_delay_ms
            self._wait_for_more(delay_ms, max(self._rebalance_ms - delay_ms, 0))
        else:
            self._join_due = self._home.deadlines.after(self._rebalance_ms, self._complete)
            self._complete_if_all_joined()

    def _wait_for_more(self, delay_ms: int, remaining_ms: int) -> None:
        """The first round ends when nobody has come for a while."""
        self._came_meanwhile = False

        def look() -> None:
            if self._came_meanwhile and remaining_ms:
                most = self._home.settings.rebalance_delay_ms
                self._wait_for_more(min(most, remaining_ms), max(remaining_ms - delay_ms, 0))
            else:
                self._complete()

        self._join_due = self._home.deadlines.after(delay_ms, look)

    def _complete_if_all_joined(self) -> None:
        if self.state is GroupState.PREPARING and not self._first_round and self._all_joined:
            self._complete()

    def _complete(self) -> None:
        """The members are there, or their time is over: a generation begins."""
        self._cancel_dues()
        for member in list(self._members.values()):
            if member.joining is None and member.instance is None:
                self._remove(member.id)
        if self._members and not self._elect():
            # Only static members, all away: they are waited for until their sessions end.
            self._join_due = self._home.deadlines.after(self._rebalance_ms, self._complete)
            return
        self.generation += 1
        self._first_round = False
        self._unsynced.clear()
        if not self._members:
            self.protocol = None
            self._go(GroupState.EMPTY)
            self.emptied_ms = self._home.clock.now_ms()
            return
        self.protocol = self._select_protocol()
        self._go(GroupState.COMPLETING)
        generation = self.generation
        self._sync_due = self._home.deadlines.after(self._rebalance_ms, lambda: self._expire_sync(generation))
        self._unsynced.update(self._members)
        for member in list(self._members.values()):
            member.session.set(member.session_ms)
            member.is_new = False
            self._answer_join(member, self._joined(member))

    def _elect(self) -> bool:
        """A leader that has joined, the one that was before if it can be; False if nobody has."""
        leader = self._members.get(self.leader or "")
        if leader is not None and leader.joining is not None:
            return True
        for member in self._members.values():
            if member.joining is not None:
                self.leader = member.id
                return True
        return False

    def _select_protocol(self) -> str:
        """The one that most members like best, of those that all of them know."""
        votes: dict[str, int] = {}
        members = self._members.values()
        for member in members:
            best = next(name for name in member.protocols if self._knowers[name] == len(members))
            votes[best] = votes.get(best, 0) + 1
        return max(votes, key=votes.__getitem__)

    def _cancel_dues(self) -> None:
        for due in (self._join_due, self._sync_due):
            if due is not None:
                due.cancel()
        self._join_due = self._sync_due = None

    # -- syncing

    def sync(self, ask: Sync, respond: OnSynced) -> None:
        refused = self._known(ask.member, ask.instance)
        if refused is None and ask.generation != self.generation:
            refused = Refused.ILLEGAL_GENERATION
        if refused is None and (_differ(ask.protocol_type, self.protocol_type) or _differ(ask.protocol, self.protocol)):
            refused = Refused.INCONSISTENT_PROTOCOL
        if refused is None and self.state is GroupState.PREPARING:
            refused = Refused.REBALANCING
        if refused is not None:
            respond(Synced(refused))
            return
        member = self._members[ask.member]
        self._unsynced.discard(ask.member)
        if not self._unsynced and self._sync_due is not None:
            self._sync_due.cancel()
            self._sync_due = None
        if self.state is GroupState.STABLE:
            respond(Synced(None, self.protocol_type, self.protocol, member.assignment))
            return
        member.answer_sync(Synced(Refused.REBALANCING))
        member.syncing = respond
        if ask.member == self.leader:
            assignments = dict(ask.assignments)
            self._go(GroupState.STABLE)
            for one in list(self._members.values()):
                one.assignment = assignments.get(one.id, b"")
                self._answer_sync(one, Synced(None, self.protocol_type, self.protocol, one.assignment))

    def _answer_sync(self, member: _Member, synced: Synced) -> None:
        if member.syncing is not None:
            member.session.set(member.session_ms)
            member.answer_sync(synced)

    def _expire_sync(self, generation: int) -> None:
        self._sync_due = None
        if generation != self.generation or self.state not in (GroupState.COMPLETING, GroupState.STABLE):
            return
        if self._unsynced:
            for member in list(self._unsynced):
                self._remove(member)
            self._prepare()

    # -- staying and going

    def heartbeat(self, member: str, instance: str | None, generation: int) -> Refused | None:
        refused = self._known(member, instance)
        if refused is not None:
            return refused
        if generation != self.generation:
            return Refused.ILLEGAL_GENERATION
        found = self._members[member]
        found.session.set(found.session_ms)
        return Refused.REBALANCING if self.state is GroupState.PREPARING else None

    def leave(self, leaving: Iterable[Leaving]) -> list[Refused | None]:
        """What becomes of each: None if it has left."""
        results = [self._leave(one) for one in leaving]
        if None in results:
            self._member_gone()
        return results

    def _leave(self, one: Leaving) -> Refused | None:
        if not one.member:
            owner = self._instances.get(one.instance) if one.instance is not None else None
            if owner is None:
                return Refused.UNKNOWN_MEMBER
            self._remove(owner)
        elif one.member in self._pending:
            self._remove(one.member)
        else:
            refused = self._known(one.member, one.instance)
            if refused is not None:
                return refused
            self._remove(one.member)
        return None

    def _expire(self, name: str) -> None:
        """Nothing was heard of it for its session's time."""
        member = self._members.get(name)
        if member is not None and not member.is_new and (member.joining is not None or member.syncing is not None):
            # It waits for us, and cannot be heard.
            member.session.set(member.session_ms)
        elif member is not None or name in self._pending:
            self._remove(name)
            self._member_gone()

    def _member_gone(self) -> None:
        if self.state in (GroupState.STABLE, GroupState.COMPLETING):
            self._prepare()
        elif self.state is GroupState.PREPARING and self._all_joined and (not self._first_round or not self._members):
            self._complete()

    def _remove(self, name: str) -> None:
        pending = self._pending.pop(name, None)
        if pending is not None:
            pending.cancel()
        self._unsynced.discard(name)
        member = self._members.pop(name, None)
        if member is None:
            return
        self._count(member, -1)
        member.session.cancel()
        if member.instance is not None and self._instances.get(member.instance) == name:
            del self._instances[member.instance]
        if self.leader == name:
            self.leader = next(iter(self._members), None)
        self._answer_join(member, Joined(Refused.UNKNOWN_MEMBER, ""))
        member.answer_sync(Synced(Refused.UNKNOWN_MEMBER))

    def close(self) -> None:
        """The group is gone: nobody waits any longer."""
        self._cancel_dues()
        names: Sequence[str] = [*self._members, *self._pending]
        for name in names:
            self._remove(name)
        self._go(GroupState.DEAD)


def _differ(told: str | None, known: str | None) -> bool:
    return told is not None and known is not None and told != known
