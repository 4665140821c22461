"""Share groups: who reads topics together, record by record.

Comes in: heartbeats and leaves of members, topics that change, and the time. Goes out: a standing for each heartbeat,
and word of members that are gone. Several members may have the same partition, so nobody waits for another: a member
has what the target says as soon as it asks. Who is in a group is in memory alone, and after a start members join again.
A group is forgotten once it has no members and has read nothing.
"""

from collections.abc import Callable, Mapping
from typing import Final

from interlog.core.catalog import Catalog
from interlog.core.group_alarm import Alarm, Home
from interlog.core.group_assignors import Subscriber
from interlog.core.group_balanced import Lookup
from interlog.core.group_settings import own_settings
from interlog.core.group_words import (
    JOINS,
    LEAVES,
    GroupError,
    GroupKind,
    GroupState,
    GroupView,
    Heartbeat,
    MemberView,
    Refused,
    Standing,
)
from interlog.core.share_assignor import simple
from interlog.core.share_partitions import GroupKey, SharePartitions

ASSIGNOR: Final = "simple"

OnGone = Callable[[str, str, str], None]  # namespace, group, member


class _Member:
    __slots__ = ("assigned", "client_id", "epoch", "epoch_before", "host", "id", "rack", "session", "topics")

    def __init__(self, name: str, session: Alarm) -> None:
        self.id = name
        self.session = session
        self.rack: str | None = None
        self.client_id = ""
        self.host = ""
        self.topics: frozenset[str] = frozenset()
        self.epoch = self.epoch_before = JOINS
        self.assigned: frozenset[int] = frozenset()  # as it was last told


class ShareGroup:
    def __init__(
        self,
        name: str,
        home: Home,
        topics: Lookup,
        own: Callable[[], Mapping[str, int]],
        on_gone: Callable[[str], None],
    ) -> None:
        self.name = name
        self.epoch = 0
        self._home = home
        self._all_topics = topics
        self._own = own  # settings, in place of those of all groups
        self._on_gone = on_gone
        self._members: dict[str, _Member] = {}
        self._topics: dict[str, tuple[int, ...]] = {}  # those that somebody wants, as the target knows them
        self._target: dict[str, frozenset[int]] = {}
        self._stale = False  # topics have changed since the target was made

    @property
    def empty(self) -> bool:
        return not self._members

    def view(self) -> GroupView:
        members = tuple(
            MemberView(
                one.id,
                None,
                one.client_id,
                one.host,
                rack=one.rack,
                epoch=one.epoch,
                topics=tuple(sorted(one.topics)),
                assigned=one.assigned,
                target=self._target.get(one.id, frozenset()),
            )
            for one in self._members.values()
        )
        state = GroupState.STABLE if members else GroupState.EMPTY
        return GroupView(self.name, GroupKind.SHARE, state, "", ASSIGNOR, self.epoch, self.epoch, members)

    def topic_changed(self, name: str) -> None:
        """A topic has come, gone, or got more partitions."""
        self._stale = self._stale or any(name in one.topics for one in self._members.values())

    def heartbeat(self, ask: Heartbeat) -> Standing:
        member = self._members.get(ask.member)
        if member is None:
            member = self._join(ask)
        elif ask.epoch != JOINS:
            _check_epoch(member, ask)
        changed = member.id not in self._target or (ask.topics is not None and ask.topics != member.topics)
        member.rack = ask.rack if ask.rack is not None else member.rack
        member.client_id, member.host = ask.client_id, ask.host
        member.topics = member.topics if ask.topics is None else ask.topics
        if changed or self._stale:
            self._look_at_topics(changed=changed)
        settings, own = self._home.settings, self._own()
        member.session.set(own.get("share_session_ms", settings.share_session_ms))
        if member.epoch != self.epoch:
            member.epoch_before, member.epoch = member.epoch, self.epoch
        assigned = self._target[member.id]
        told = ask.epoch == JOINS or assigned != member.assigned or ask.epoch != member.epoch
        member.assigned = assigned
        next_ms = own.get("share_heartbeat_ms", settings.share_heartbeat_ms)
        return Standing(None, member.id, member.epoch, assigned if told else None, next_ms)

    def _join(self, ask: Heartbeat) -> _Member:
        name = ask.member
        if ask.epoch != JOINS:
            raise _unknown(name, self.name)
        most = self._home.settings.members
        if len(self._members) >= most:
            raise GroupError(Refused.FULL, f"The group has reached its maximum capacity of {most} members.")
        made = self._members[name] = _Member(name, Alarm(self._home, lambda: self.remove(name)))
        return made

    def _look_at_topics(self, *, changed: bool) -> None:
        """The epoch rises, and there is a new target, if somebody wants something else or topics have changed."""
        self._stale = False
        names = sorted({name for one in self._members.values() for name in one.topics})
        topics = {name: found for name in names if (found := self._all_topics.partitions(name)) is not None}
        if not changed and topics == self._topics:
            return
        self._topics = topics
        self.epoch += 1
        nothing: frozenset[int] = frozenset()
        before = self._target
        self._target = simple(
            [Subscriber(one.id, None, one.topics, before.get(one.id, nothing)) for one in self._members.values()],
            topics,
        )

    def remove(self, name: str) -> None:
        """It leaves, or was silent for too long. What it held is others'."""
        member = self._members.pop(name, None)
        if member is None:
            raise _unknown(name, self.name)
        member.session.cancel()
        self._target.pop(name, None)
        self._look_at_topics(changed=True)
        self._on_gone(name)

    def close(self) -> None:
        for member in self._members.values():
            member.session.cancel()
        self._members.clear()


def _unknown(member: str, group: str) -> GroupError:
    return GroupError(Refused.UNKNOWN_MEMBER, f"Member {member} is not a member of group {group}.")


def _check_epoch(member: _Member, ask: Heartbeat) -> None:
    # The answer to its last heartbeat may have been lost: then it is one epoch behind.
    if ask.epoch in (member.epoch, member.epoch_before):
        return
    size = "greater" if ask.epoch > member.epoch else "smaller"
    raise GroupError(
        Refused.FENCED_EPOCH,
        f"The share group member has a {size} member epoch ({ask.epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


class ShareGroups:
    def __init__(
        self,
        home: Home,
        catalog: Catalog,
        partitions: SharePartitions,
        topics: Callable[[str], Lookup],
        refuses: Callable[[str, str], Refused | None],
    ) -> None:
        self._home = home
        self._catalog = catalog
        self._partitions = partitions
        self._topics = topics  # of a namespace
        self._refuses = refuses  # why a group cannot be made
        self._groups: dict[GroupKey, ShareGroup] = {}
        self.on_gone: OnGone = lambda namespace, group, member: None

    def __len__(self) -> int:
        return len(self._groups)

    def find(self, namespace: str, group: str) -> ShareGroup | None:
        return self._groups.get((namespace, group))

    def names(self, namespace: str) -> list[str]:
        return [name for space, name in self._groups if space == namespace]

    def view(self, namespace: str, group: str) -> GroupView:
        """Of one that is there, or has read something."""
        found = self.find(namespace, group)
        return GroupView(group, GroupKind.SHARE, GroupState.EMPTY, "", ASSIGNOR) if found is None else found.view()

    def follow(self, namespace: str, group: str, ask: Heartbeat) -> Standing:
        """The heartbeat of a member; it joins with the first, and leaves with the last."""
        try:
            found = self.find(namespace, group)
            if ask.epoch == LEAVES:
                if found is None:
                    raise _unknown(ask.member, group)
                found.remove(ask.member)
                return Standing(None, ask.member, ask.epoch)
            return (found or self._make(namespace, group, ask)).heartbeat(ask)
        except GroupError as error:
            return Standing(error.why, ask.member, sentence=str(error))

    def _make(self, namespace: str, group: str, ask: Heartbeat) -> ShareGroup:
        if ask.epoch != JOINS:
            # The members of before a start have epochs that nobody remembers: they join again.
            raise _unknown(ask.member, group)
        known = self._partitions.has_group(namespace, group)
        refused = None if known else self._refuses(namespace, group)
        if refused is Refused.OTHER_KIND:
            raise GroupError(refused, f"Group {group} is not a share group.")
        if refused is not None:
            raise GroupError(refused)
        made = self._groups[namespace, group] = ShareGroup(
            group,
            self._home,
            self._topics(namespace),
            lambda: own_settings(self._catalog, namespace, group),
            lambda member: self.on_gone(namespace, group, member),
        )
        return made

    def delete(self, namespace: str, group: str) -> Refused | None:
        """The group and all it has read."""
        found = self.find(namespace, group)
        if found is not None and not found.empty:
            return Refused.NOT_EMPTY
        self._groups.pop((namespace, group), None)
        self._partitions.remove_group(namespace, group)
        return None

    def topic_changed(self, namespace: str, name: str) -> None:
        for (space, _), group in self._groups.items():
            if space == namespace:
                group.topic_changed(name)

    def forget_idle(self) -> None:
        for key in [key for key, group in self._groups.items() if group.empty]:
            if not self._partitions.has_group(*key):
                del self._groups[key]

    def drop_namespace(self, namespace: str) -> None:
        for key in [key for key in self._groups if key[0] == namespace]:
            self._groups.pop(key).close()
