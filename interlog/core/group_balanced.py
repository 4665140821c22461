"""A balanced group: the broker says who reads what, and members follow at their own pace.

Comes in: heartbeats, leaves, topics that change, and the time. Goes out: a standing for each heartbeat. Whenever the
members or what they want changes, the group's epoch rises and a target is made for it: who is to have which partitions
in the end. Each member is led there by its own heartbeats: it is told to give up what is not its own any more, it
tells that it has, and then gets what is new, as far as others have given that up. A partition is held by one member at
a time: `_holders` says by which.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from interlog.base.errors import InvalidError
from interlog.core.group_alarm import Alarm, Home
from interlog.core.group_assignors import ASSIGNORS, DEFAULT_ASSIGNOR, Subscriber
from interlog.core.group_member import LEAST_REBALANCE_MS, NOTHING, Member, Phase
from interlog.core.group_words import (
    JOINS,
    LEAVES_FOR_NOW,
    GroupError,
    GroupKind,
    GroupState,
    GroupView,
    Heartbeat,
    Join,
    MemberView,
    Refused,
    Standing,
)
from interlog.core.name_pattern import NamePattern, name_pattern


class Lookup(Protocol):
    """The topics that members may want."""

    def names(self) -> Iterable[str]: ...

    def partitions(self, name: str) -> tuple[int, ...] | None: ...


class BalancedGroup:
    kind = GroupKind.BALANCED

    def __init__(self, name: str, home: Home, topics: Lookup) -> None:
        self.name = name
        self.epoch = 0
        self.target_epoch = 0
        self.emptied_ms = home.clock.now_ms()
        self.own: Mapping[str, int] = {}  # settings, in place of those of all groups
        self._home = home
        self._all_topics = topics
        self._stale = False  # topics have changed since the target was made
        self._topics: dict[str, tuple[int, ...]] = {}  # those that somebody wants, as the target knows them
        self._members: dict[str, Member] = {}
        self._instances: dict[str, str] = {}
        self._holders: dict[int, str] = {}
        self._settled: set[str] = set()  # the members that have reached their target
        self.on_guests_alone: Callable[[], None] = lambda: None

    # -- asked

    @property
    def empty(self) -> bool:
        return not self._members

    idle = empty

    @property
    def state(self) -> GroupState:
        if not self._members:
            return GroupState.EMPTY
        if self.epoch > self.target_epoch:
            return GroupState.ASSIGNING
        return GroupState.STABLE if len(self._settled) == len(self._members) else GroupState.RECONCILING

    def view(self) -> GroupView:
        members = tuple(
            MemberView(
                member.id,
                member.instance,
                member.client_id,
                member.host,
                rack=member.rack,
                epoch=member.epoch,
                topics=tuple(sorted(member.topics)),
                pattern="" if member.pattern is None else member.pattern.text,
                assigned=member.assigned,
                target=member.target,
                guest=member.guest is not None,
            )
            for member in self._members.values()
        )
        assignor = self._assignor()
        return GroupView(self.name, self.kind, self.state, "", assignor, self.epoch, self.target_epoch, members)

    def wants(self, topic: str) -> bool:
        return any(topic in member.wanted for member in self._members.values())

    def check(
        self, member: str, instance: str | None, generation: int, *, transactional: bool, epochs: bool
    ) -> Refused | None:
        """Whether somebody may set cursors of the group."""
        if generation < 0 and not self._members:
            return None
        found = self._members.get(member)
        if found is None:
            return Refused.UNKNOWN_MEMBER
        if not transactional and not epochs and found.guest is None:
            return Refused.EPOCHS_NEEDED
        if generation != found.epoch:
            by_generation = transactional or found.guest is not None
            return Refused.ILLEGAL_GENERATION if by_generation else Refused.STALE_EPOCH
        return None

    def check_reader(self, member: str | None, epoch: int) -> Refused | None:
        """Whether somebody may ask for cursors of the group."""
        if member is None and epoch < 0:
            return None
        found = self._members.get(member or "")
        if found is None:
            return Refused.UNKNOWN_MEMBER
        return None if epoch == found.epoch else Refused.STALE_EPOCH

    def known(self, member: str) -> frozenset[int]:
        """The partitions that a member may speak of."""
        found = self._members.get(member)
        return NOTHING if found is None else found.assigned | found.giving_up

    # -- told by the catalog

    def topic_changed(self, name: str) -> None:
        """A topic has come, gone, or got more partitions."""
        for member in self._members.values():
            if name in member.wanted or (member.pattern is not None and member.pattern.fits(name)):
                self._stale = True
                return

    # -- heartbeats

    def heartbeat(self, ask: Heartbeat) -> Standing:
        member = self._member_of(ask)
        pattern = self._pattern_of(ask, member)
        before = member.assigned
        self._refresh(self._update(member, ask, pattern))
        self._reconcile(member, ask.owned)
        settings = self._home.settings
        session_ms = self.own.get("session_ms", settings.session_ms)
        member.session.set(session_ms if member.guest is None else member.guest.session_ms)
        told = ask.epoch == JOINS or ask.full or member.assigned != before
        next_ms = self.own.get("heartbeat_ms", settings.heartbeat_ms)
        if self.state is not GroupState.STABLE:
            next_ms = min(next_ms, settings.settling_heartbeat_ms)
        return Standing(None, member.id, member.epoch, member.assigned if told else None, next_ms)

    def _refresh(self, changed: bool) -> None:
        """A target for what members want now."""
        if changed or self._stale:
            self._look_at_topics(changed)
        if self.epoch > self.target_epoch:
            self._make_target()

    def _member_of(self, ask: Heartbeat) -> Member:
        """Who it is: known, new, or in the place of another; GroupError if it is nobody."""
        joins = ask.epoch == JOINS
        if ask.instance is not None:
            owner = self._instances.get(ask.instance)
            if owner is not None and joins and owner != ask.member:
                return self._take_over(self._members[owner], ask)
            if owner is None and not joins:
                raise GroupError(Refused.UNKNOWN_MEMBER, f"Instance id {ask.instance} is unknown.")
            if owner is not None and owner != ask.member:
                raise GroupError(
                    Refused.FENCED_INSTANCE,
                    f"Static member {ask.member} with instance id {ask.instance} was fenced by member {owner}.",
                )
        member = self._members.get(ask.member)
        if member is None:
            if not joins:
                raise GroupError(Refused.UNKNOWN_MEMBER, f"Member {ask.member} is not a member of group {self.name}.")
            return self._new_member(ask)
        if joins and member.epoch == LEAVES_FOR_NOW:
            member.epoch = member.epoch_before = JOINS
            self._settled.discard(member.id)
        if not joins:
            _check_epoch(member, ask)
        return member

    def _new_member(self, ask: Heartbeat) -> Member:
        most = self._home.settings.members
        if len(self._members) >= most:
            raise GroupError(Refused.FULL, f"The group has reached its maximum capacity of {most} members.")
        name = ask.member or self._home.new_id()
        member = Member(name, Alarm(self._home, lambda: self._fence(name)))
        self._pattern_of(ask, member)  # a member whose pattern cannot be read is none
        member.instance = ask.instance
        self._put(member)
        return member

    def _put(self, member: Member) -> None:
        self._members[member.id] = member
        if member.instance is not None:
            self._instances[member.instance] = member.id

    def _take_over(self, old: Member, ask: Heartbeat) -> Member:
        """A static member is back under another id: it has what it had."""
        if old.epoch != LEAVES_FOR_NOW and old.guest is None:
            raise GroupError(
                Refused.UNRELEASED_INSTANCE,
                f"Static member {ask.member} with instance id {ask.instance} cannot join the group because the "
                f"instance id is owned by member {old.id}.",
            )
        name = ask.member or self._home.new_id()
        if name in self._members:
            raise GroupError(Refused.UNKNOWN_MEMBER, f"Member {name} is another member of group {self.name}.")
        self._pattern_of(ask, old)
        self._remove(old)
        old.id = name
        old.session = Alarm(self._home, lambda: self._fence(name))
        old.epoch = old.epoch_before = JOINS
        self._put(old)
        self._hold(old)
        return old

    def _pattern_of(self, ask: Heartbeat, member: Member) -> NamePattern | None:
        if ask.pattern is None or (member.pattern is not None and member.pattern.text == ask.pattern):
            return member.pattern
        try:
            return name_pattern(ask.pattern) if ask.pattern else None
        except InvalidError as error:
            raise GroupError(
                Refused.BAD_PATTERN, f"SubscribedTopicRegex is not a regular expression: {error}"
            ) from None

    def _update(self, member: Member, ask: Heartbeat, pattern: NamePattern | None) -> bool:
        """What a member says of itself; whether it wants something else now."""
        if ask.instance is not None and ask.instance != member.instance:
            self._instances.pop(member.instance or "", None)
            member.instance = ask.instance
            self._put(member)
        member.rack = ask.rack if ask.rack is not None else member.rack
        member.client_id, member.host = ask.client_id, ask.host
        member.user, member.may_read, member.guest = ask.user, ask.may_read, ask.guest
        member.assignor = ask.assignor or member.assignor
        if ask.rebalance_ms != -1:
            member.rebalance_ms = max(ask.rebalance_ms, LEAST_REBALANCE_MS)
        topics = member.topics if ask.topics is None else ask.topics
        changed = member.is_new or topics != member.topics or pattern is not member.pattern
        member.topics, member.pattern, member.is_new = topics, pattern, False
        return changed

    # -- what is wanted, and who is to have it

    def _look_at_topics(self, changed: bool) -> None:
        """The epoch rises if somebody wants something else, or topics are not what they were."""
        self._stale = False
        found: dict[tuple[str, str], frozenset[str]] = {}  # by pattern and user
        for member in self._members.values():
            member.wanted = member.topics
            if member.pattern is not None:
                key = member.pattern.text, member.user
                if key not in found:
                    fitting = filter(member.pattern.fits, self._all_topics.names())
                    found[key] = frozenset(filter(member.may_read, fitting))
                member.wanted |= found[key]
        wanted: set[str] = set()
        for topics in {member.wanted for member in self._members.values()}:
            wanted |= topics
        topics_now = {}
        for name in sorted(wanted):
            partitions = self._all_topics.partitions(name)
            if partitions is not None:
                topics_now[name] = partitions
        if changed or topics_now != self._topics:
            self._topics = topics_now
            self.epoch += 1

    def _assignor(self) -> str:
        votes: dict[str, int] = {}
        for member in self._members.values():
            if member.assignor is not None:
                votes[member.assignor] = votes.get(member.assignor, 0) + 1
        return max(sorted(votes), key=votes.__getitem__, default=DEFAULT_ASSIGNOR)

    def _make_target(self) -> None:
        members = self._members.values()
        topics = self._topics
        subscribers = [
            Subscriber(member.id, member.instance, member.wanted.intersection(topics), member.target)
            for member in members
        ]
        target = ASSIGNORS[self._assignor()](subscribers, topics)
        for member in members:
            member.target = target[member.id]
        self.target_epoch = self.epoch
        self._settled.clear()

    # -- the way there

    def _reconcile(self, member: Member, owned: frozenset[int] | None) -> None:
        if member.id in self._settled:
            return
        if member.phase is Phase.GIVING_UP:
            if _still_owns(member.giving_up, owned):
                return
            self._go_on(member, member.epoch + 1, owned)
        elif member.phase is Phase.WAITING or member.epoch != self.target_epoch:
            self._go_on(member, member.epoch, owned)
        if member.phase is Phase.STABLE and member.epoch == self.target_epoch:
            self._settled.add(member.id)

    def _go_on(self, member: Member, epoch: int, owned: frozenset[int] | None) -> None:
        """One step: give up first; then take what is free; then wait for the rest."""
        kept = member.assigned & member.target
        giving_up = member.assigned - kept
        self._let_go(member)
        if giving_up and _still_owns(giving_up, owned):
            if epoch != member.epoch:
                member.move_to(epoch)
            member.assigned, member.giving_up = kept, giving_up
            self._hold(member)
            member.phase = Phase.GIVING_UP
            self._await_giving_up(member)
            return
        new = frozenset(one for one in member.target - kept if one not in self._holders)
        if member.epoch != self.target_epoch:
            member.move_to(self.target_epoch)
        member.assigned, member.giving_up = kept | new, NOTHING
        self._hold(member)
        member.phase = Phase.STABLE if member.assigned == member.target else Phase.WAITING
        member.stop_rebalance()

    def _let_go(self, member: Member) -> None:
        for partition in member.assigned | member.giving_up:
            self._holders.pop(partition, None)

    def _hold(self, member: Member) -> None:
        for partition in member.assigned | member.giving_up:
            self._holders[partition] = member.id

    def _await_giving_up(self, member: Member) -> None:
        """A member that does not give up in time is put out."""
        epoch = member.epoch

        def expire() -> None:
            member.rebalance_due = None
            if member.epoch == epoch and self._members.get(member.id) is member:
                self._fence(member.id)

        member.stop_rebalance()
        member.rebalance_due = self._home.deadlines.after(member.rebalance_ms, expire)

    # -- guests: members who speak as in a classic group, see group_guests

    def guests(self) -> list[Member]:
        return [member for member in self._members.values() if member.guest is not None]

    @property
    def guests_alone(self) -> bool:
        return bool(self._members) and all(member.guest is not None for member in self._members.values())

    def instance(self, name: str) -> Member | None:
        return self._members.get(self._instances.get(name, ""))

    def find(self, name: str) -> Member | None:
        return self._members.get(name)

    def member(self, name: str, instance: str | None) -> Member:
        """GroupError if it is nobody."""
        if instance is not None:
            owner = self._instances.get(instance)
            if owner is None:
                raise GroupError(Refused.UNKNOWN_MEMBER, f"Instance id {instance} is unknown.")
            if owner != name:
                raise GroupError(
                    Refused.FENCED_INSTANCE,
                    f"Static member {name} with instance id {instance} was fenced by member {owner}.",
                )
        member = self._members.get(name)
        if member is None:
            raise GroupError(Refused.UNKNOWN_MEMBER, f"Member {name} is not a member of group {self.name}.")
        return member

    def take_in(self, name: str, ask: Join, topics: frozenset[str], assigned: frozenset[int]) -> None:
        """A member of the classic group that this one was: it has what it had there."""
        member = Member(name, Alarm(self._home, lambda: self._fence(name)))
        member.instance, member.guest = ask.instance, ask
        member.client_id, member.host = ask.client_id, ask.host
        member.rebalance_ms = ask.rebalance_ms
        member.topics = topics
        member.is_new = False
        member.epoch = member.epoch_before = self.epoch
        member.assigned = member.target = assigned.difference(self._holders)
        self._put(member)
        self._hold(member)
        member.session.set(ask.session_ms)

    def must_join(self, member: Member) -> bool:
        """Whether a guest has a step to make; if it does not join again in time, it is put out."""
        self._refresh(False)
        if member.id in self._settled:
            return False
        if member.phase is Phase.WAITING:
            wanted = member.target - member.assigned
            if all(one in self._holders for one in wanted) and member.epoch == self.target_epoch:
                return False  # others have not given up yet
        elif member.phase is Phase.STABLE and member.epoch == self.target_epoch:
            return False
        if member.rebalance_due is None:
            self._await_giving_up(member)
        return True

    def put_out(self, member: Member) -> None:
        self._fence(member.id)

    # -- going

    def leave(self, name: str, instance: str | None, *, for_now: bool) -> None:
        """GroupError if it is nobody."""
        member = self.member(name, instance)
        if for_now and instance is not None:
            # It will be back: what it has is kept for it, until its session ends.
            self._let_go(member)
            member.epoch = LEAVES_FOR_NOW
            member.giving_up = NOTHING
            member.phase = Phase.STABLE
            member.stop_rebalance()
            self._hold(member)
            self._settled.discard(name)
        else:
            self._fence(name)

    def _fence(self, name: str) -> None:
        """The member is gone, and what it had is free."""
        member = self._members.get(name)
        if member is None:
            return
        self._remove(member)
        self.epoch += 1
        self._stale = True  # some topics may have been its alone
        if not self._members:
            self.emptied_ms = self._home.clock.now_ms()
        elif self.guests_alone:
            self.on_guests_alone()

    def _remove(self, member: Member) -> None:
        member.stop()
        self._let_go(member)
        del self._members[member.id]
        self._settled.discard(member.id)
        if member.instance is not None and self._instances.get(member.instance) == member.id:
            del self._instances[member.instance]

    def close(self) -> None:
        """The group is gone."""
        members: Iterable[Member] = list(self._members.values())
        for member in members:
            self._remove(member)


def _still_owns(partitions: frozenset[int], owned: frozenset[int] | None) -> bool:
    """Whether it may still read some of them: who does not say what it owns may own everything."""
    return bool(partitions) and (owned is None or bool(partitions & owned))


def _check_epoch(member: Member, ask: Heartbeat) -> None:
    if ask.epoch == member.epoch:
        return
    # The answer to its last heartbeat may have been lost: then it is one epoch behind.
    behind = ask.epoch == member.epoch_before and ask.owned is not None and ask.owned <= member.assigned
    if ask.epoch > member.epoch or not behind:
        size = "greater" if ask.epoch > member.epoch else "smaller"
        raise GroupError(
            Refused.FENCED_EPOCH,
            f"The consumer group member has a {size} member epoch ({ask.epoch}) than the one known by the group "
            f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
        )
