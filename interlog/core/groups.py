"""Groups: who reads topics together, and which of them reads what.

Comes in: what members ask, by namespace and name of the group, and the time. Goes out: an answer to each, at once or
later by the call that came with the question. What groups have read is with the cursors and lasts; who is in them is
in memory alone, and after a start members join again. A group is made by its first member and is of one kind; a classic
one becomes balanced with the first member of that kind, and classic again once the last one has left (`group_guests`).
It is forgotten once it has neither members nor cursors. Share groups are looked after by `shares`; here is what all
kinds have in common.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from interlog.base.errors import InvalidError
from interlog.core.catalog import Catalog
from interlog.core.catalog_objects import Change, ObjectItem, QueueItem, TopicItem, What
from interlog.core.cursors import Cursors
from interlog.core.group_alarm import GroupSettings, Home
from interlog.core.group_assignors import ASSIGNORS
from interlog.core.group_balanced import BalancedGroup
from interlog.core.group_classic import ClassicGroup
from interlog.core.group_settings import KIND as OWN_SETTINGS
from interlog.core.group_settings import own_settings
from interlog.core.group_words import (
    JOINS,
    LEAVES_FOR_NOW,
    GroupError,
    GroupKind,
    GroupState,
    GroupView,
    Heartbeat,
    Join,
    Joined,
    Leaving,
    OnJoined,
    OnSynced,
    Refused,
    Standing,
    Sync,
    Synced,
)
from interlog.core.share_partitions import SharePartitions

if TYPE_CHECKING:
    from interlog.core.group_guests import Guests, GuestWords
    from interlog.core.share_groups import ShareGroups

__all__ = ["GroupSettings", "Groups"]

Key = tuple[str, str]  # namespace, group
_LOOK_MS: Final = 60_000  # how often old cursors and groups that nobody needs are looked for


def read_partitions(item: TopicItem | QueueItem | None) -> tuple[int, ...] | None:
    """The partitions of what groups can read: topics, and durable queues."""
    if isinstance(item, TopicItem) or (item is not None and item.durable):
        return item.partitions
    return None


class _Topics:
    """The topics of a namespace, as balanced groups look at them."""

    def __init__(self, catalog: Catalog, namespace: str) -> None:
        self._catalog = catalog
        self._namespace = namespace

    def names(self) -> Iterator[str]:
        if self._catalog.has_namespace(self._namespace):
            yield from (item.name for item in self._catalog.topics(self._namespace))
            yield from (item.name for item in self._catalog.queues(self._namespace) if item.durable)

    def partitions(self, name: str) -> tuple[int, ...] | None:
        return read_partitions(self._catalog.find(self._namespace, name))


class Groups:
    def __init__(self, home: Home, catalog: Catalog, cursors: Cursors, share_partitions: SharePartitions) -> None:
        self._home = home
        self._catalog = catalog
        self._cursors = cursors
        self._share_partitions = share_partitions
        self._shares: ShareGroups | None = None
        self.guest_words: Callable[[str], GuestWords] | None = None  # of a namespace's members
        self._classic: dict[Key, ClassicGroup] = {}
        self._balanced: dict[Key, BalancedGroup] = {}
        self._started_ms = home.clock.now_ms()
        self._look_ms = self._started_ms + _LOOK_MS
        catalog.observe(self._catalog_changed)

    def __len__(self) -> int:
        return len(self._classic) + len(self._balanced) + (0 if self._shares is None else len(self._shares))

    @property
    def settings(self) -> GroupSettings:
        return self._home.settings

    @settings.setter
    def settings(self, settings: GroupSettings) -> None:
        self._home.settings = settings

    # -- share groups

    @property
    def shares(self) -> "ShareGroups":
        """Loaded when somebody first asks for one."""
        if self._shares is None:
            from interlog.core.share_groups import ShareGroups

            self._shares = ShareGroups(self._home, self._catalog, self._share_partitions, self._topics, self._may_share)
        return self._shares

    def _topics(self, namespace: str) -> "_Topics":
        return _Topics(self._catalog, namespace)

    def _may_share(self, namespace: str, group: str) -> Refused | None:
        """Why a share group cannot be made."""
        found = self._find((namespace, group))
        if (found is not None and not found.idle) or self._cursors.fetch_group(namespace, group):
            return Refused.OTHER_KIND
        if found is None and len(self) >= self.settings.groups:
            return Refused.FULL
        self._forget((namespace, group))
        return None

    def is_share(self, namespace: str, group: str) -> bool:
        """Whether it is a share group: it has members of that kind, or has read something."""
        return self._share_partitions.has_group(namespace, group) or (
            self._shares is not None and self._shares.find(namespace, group) is not None
        )

    # -- classic groups

    def join(self, namespace: str, group: str, ask: Join, respond: OnJoined) -> None:
        key = namespace, group
        balanced = self._balanced.get(key)
        found = self._classic.get(key)
        guests = self._guests(key)
        if guests is not None:
            guests.join(ask, respond)
        elif (balanced is not None and not balanced.empty) or self.is_share(namespace, group):
            respond(Joined(Refused.INCONSISTENT_PROTOCOL, ask.member))
        elif found is None and ask.member:
            respond(Joined(Refused.UNKNOWN_MEMBER, ask.member))
        elif found is None and len(self) >= self.settings.groups:
            respond(Joined(Refused.FULL, ""))
        else:
            if found is None:
                found = self._classic[key] = ClassicGroup(group, self._home)
            if balanced is not None:
                # Generations go on where the epochs ended: they never go back.
                found.generation = max(found.generation, balanced.epoch)
                del self._balanced[key]
            found.join(ask, respond)

    def sync(self, namespace: str, group: str, ask: Sync, respond: OnSynced) -> None:
        found = self._classic_or_guests((namespace, group))
        if found is None:
            respond(Synced(Refused.UNKNOWN_MEMBER))
        else:
            found.sync(ask, respond)

    def heartbeat(
        self, namespace: str, group: str, member: str, instance: str | None, generation: int
    ) -> Refused | None:
        found = self._classic_or_guests((namespace, group))
        return Refused.UNKNOWN_MEMBER if found is None else found.heartbeat(member, instance, generation)

    def leave(self, namespace: str, group: str, leaving: Sequence[Leaving]) -> list[Refused | None]:
        """What becomes of each: None if it has left."""
        found = self._classic_or_guests((namespace, group))
        if found is None:
            return [Refused.UNKNOWN_MEMBER] * len(leaving)
        return found.leave(leaving)

    def metadata(self, namespace: str, group: str) -> list[bytes]:
        """What the members of a classic group told of themselves for the protocol in use."""
        found = self._classic.get((namespace, group))
        return [] if found is None else found.metadata()

    # -- from one kind to the other, with members

    def _guests(self, key: Key) -> "Guests | None":
        """How members of classic groups are spoken to in a balanced group that has members."""
        found = self._balanced.get(key)
        if found is None or found.empty or self.guest_words is None:
            return None
        from interlog.core.group_guests import Guests  # here, because few groups ever move

        return Guests(found, self._home, self.guest_words(key[0]))

    def _classic_or_guests(self, key: Key) -> "ClassicGroup | Guests | None":
        """Who answers a member that speaks as in a classic group."""
        return self._classic.get(key) or self._guests(key)

    def _take_in(self, key: Key, classic: ClassicGroup, made: BalancedGroup) -> None:
        """Make guests of the members of a classic group; GroupError if they cannot be."""
        try:
            if self.guest_words is None:
                raise InvalidError("nobody knows their words")
            from interlog.core.group_guests import Guests

            Guests(made, self._home, self.guest_words(key[0])).take_in(classic.members())
        except InvalidError:
            raise GroupError(Refused.OTHER_KIND, f"Group {key[1]} is not a consumer group.") from None

    def _move_back(self, key: Key) -> None:
        """Only guests are left in a balanced group: they agree among themselves again."""
        guests = self._guests(key)
        assert guests is not None, "they came with their words"
        balanced = self._balanced.pop(key)
        generation = max(member.epoch for member in balanced.guests())
        members = guests.give_back()
        balanced.close()
        made = self._classic[key] = ClassicGroup(key[1], self._home)
        made.take_back(generation, members)

    # -- balanced groups

    def follow(self, namespace: str, group: str, ask: Heartbeat) -> Standing:
        """The heartbeat of a member of a balanced group; it joins with the first, and leaves with the last."""
        try:
            if ask.epoch >= JOINS:
                if ask.assignor is not None and ask.assignor not in ASSIGNORS:
                    raise GroupError(
                        Refused.UNKNOWN_ASSIGNOR,
                        f"ServerAssignor {ask.assignor} is not supported. Supported assignors: {', '.join(ASSIGNORS)}.",
                    )
                return self._beat((namespace, group), ask)
            found = self._balanced.get((namespace, group))
            if found is None:
                raise GroupError(Refused.UNKNOWN_MEMBER, f"Member {ask.member} is not a member of group {group}.")
            found.leave(ask.member, ask.instance, for_now=ask.epoch == LEAVES_FOR_NOW)
            return Standing(None, ask.member, ask.epoch)
        except GroupError as error:
            return Standing(error.why, ask.member, sentence=str(error))

    def _beat(self, key: Key, ask: Heartbeat) -> Standing:
        found = self._balanced.get(key)
        if found is not None:
            return found.heartbeat(ask)
        classic = self._classic.get(key)
        if self.is_share(*key):
            raise GroupError(Refused.OTHER_KIND, f"Group {key[1]} is not a consumer group.")
        if ask.epoch != JOINS:
            # The members of before a start have epochs that nobody remembers: they join again.
            raise GroupError(Refused.UNKNOWN_MEMBER, f"Member {ask.member} is not a member of group {key[1]}.")
        if classic is None and len(self) >= self.settings.groups:
            raise GroupError(Refused.FULL, f"There are {self.settings.groups} groups already, which is the limit.")
        made = BalancedGroup(key[1], self._home, self._topics(key[0]))
        made.own = own_settings(self._catalog, *key)
        made.on_guests_alone = partial(self._move_back, key)
        try:
            if classic is not None:
                made.epoch = made.target_epoch = classic.generation
                if not classic.idle:
                    self._take_in(key, classic, made)
            standing = made.heartbeat(ask)
        except GroupError:
            made.close()  # who is refused moves nothing
            raise
        self._classic.pop(key, None)
        self._balanced[key] = made
        if classic is not None and not classic.idle:
            classic.dissolve()
        return standing

    def known(self, namespace: str, group: str, member: str) -> frozenset[int]:
        """The partitions that a member of a balanced group may speak of."""
        found = self._balanced.get((namespace, group))
        return frozenset() if found is None else found.known(member)

    def wants(self, namespace: str, group: str, topic: str) -> bool:
        """Whether a member of a balanced group reads the topic, or would if it were there."""
        found = self._balanced.get((namespace, group))
        return found is not None and found.wants(topic)

    # -- cursors

    def check(
        self,
        namespace: str,
        group: str,
        member: str,
        instance: str | None,
        generation: int,
        *,
        transactional: bool = False,
        epochs: bool = True,
    ) -> Refused | None:
        """Whether somebody may set cursors of the group: a member of this generation, or anybody if nobody is in it.

        `epochs` is False for those who cannot know what an epoch is.
        """
        found = self._find((namespace, group))
        if found is None:
            if self.is_share(namespace, group):
                return Refused.OTHER_KIND
            if generation < 0:
                return None
            return Refused.ILLEGAL_GENERATION if transactional or not epochs else Refused.UNKNOWN_MEMBER
        refused = found.check(member, instance, generation, transactional=transactional, epochs=epochs)
        if refused is None and not transactional and isinstance(found, ClassicGroup):
            found.touch(member)
        return refused

    def check_reader(self, namespace: str, group: str, member: str | None, epoch: int) -> Refused | None:
        """Whether somebody may ask for the group's cursors."""
        if self.is_share(namespace, group):
            return Refused.OTHER_KIND
        found = self._balanced.get((namespace, group))
        return None if found is None else found.check_reader(member, epoch)

    # -- looking, deleting

    def _find(self, key: Key) -> ClassicGroup | BalancedGroup | None:
        return self._classic.get(key) or self._balanced.get(key)

    def names(self, namespace: str) -> list[str]:
        """All groups of a namespace: those with members, and those with cursors."""
        live = (name for space, name in (*self._classic, *self._balanced) if space == namespace)
        shares = [] if self._shares is None else self._shares.names(namespace)
        kept = (*self._cursors.groups(namespace), *self._share_partitions.groups(namespace))
        return sorted({*live, *shares, *kept})

    def view(self, namespace: str, group: str) -> GroupView | None:
        if self.is_share(namespace, group):
            return self.shares.view(namespace, group)
        found = self._find((namespace, group))
        if found is not None:
            return found.view()
        if self._cursors.fetch_group(namespace, group):
            return GroupView(group, GroupKind.CLASSIC, GroupState.EMPTY)
        return None

    def delete(self, namespace: str, group: str) -> Refused | None:
        """The group and its cursors."""
        key = namespace, group
        if self.is_share(namespace, group):
            return self.shares.delete(namespace, group)
        found = self._find(key)
        has_cursors = bool(self._cursors.fetch_group(namespace, group))
        if found is None and not has_cursors:
            return Refused.NOT_FOUND
        if found is not None and not found.empty:
            return Refused.NOT_EMPTY
        self._forget(key)
        if has_cursors:
            self._cursors.remove_group(namespace, group)
        return None

    def _forget(self, key: Key) -> None:
        for found in (self._classic.pop(key, None), self._balanced.pop(key, None)):
            if found is not None:
                found.close()

    # -- time, and the catalog

    def poll(self, now_ms: int) -> None:
        """Once in a while: cursors that are old go, and groups that nobody needs."""
        if now_ms < self._look_ms:
            return
        self._look_ms = now_ms + _LOOK_MS
        retention_ms = self.settings.retention_ms
        # A group may have been full of members when the broker stopped: its time counts from the start.
        if retention_ms and now_ms - self._started_ms > retention_ms:
            self._cursors.expire(now_ms, retention_ms, lambda *key: self._in_use(key, now_ms - retention_ms))
        groups: Iterable[tuple[Key, ClassicGroup | BalancedGroup]] = (*self._classic.items(), *self._balanced.items())
        for key, found in groups:
            if found.idle and not self._cursors.fetch_group(*key):
                self._forget(key)
        if self._shares is not None:
            self._shares.forget_idle()

    def _in_use(self, key: Key, since_ms: int) -> bool:
        found = self._find(key)
        return found is not None and (not found.idle or found.emptied_ms >= since_ms)

    def _catalog_changed(self, change: Change) -> None:
        item = change.item
        if isinstance(item, TopicItem | QueueItem):
            for (namespace, _), group in self._balanced.items():
                if namespace == item.namespace:
                    group.topic_changed(item.name)
            if self._shares is not None:
                self._shares.topic_changed(item.namespace, item.name)
        elif isinstance(item, ObjectItem):
            balanced = self._balanced.get((item.namespace, item.name)) if item.kind == OWN_SETTINGS else None
            if balanced is not None:
                balanced.own = {} if change.what is What.REMOVED else item.value
        elif change.what is What.REMOVED:
            for key in [key for key in (*self._classic, *self._balanced) if key[0] == item.name]:
                self._forget(key)
            if self._shares is not None:
                self._shares.drop_namespace(item.name)
