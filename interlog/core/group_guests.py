"""Guests: members of a balanced group who speak as in a classic one, while a group moves from one kind to the other.

Comes in: joins, syncs, heartbeats and leaves of a classic group's members. Goes out: the answers that those expect, as
the balanced group decides. To a guest, an epoch is a generation, and every step on its way is a round: its heartbeat
tells it to join again, it says by its join what it still reads, and its sync brings what it has. Nobody leads. What
guests say of topics and partitions is in their protocol's own bytes, which `GuestWords` knows and the core does not.
"""

from collections.abc import Iterable
from typing import Protocol

from interlog.base.errors import InvalidError
from interlog.core.group_alarm import Home
from interlog.core.group_balanced import BalancedGroup
from interlog.core.group_member import Member
from interlog.core.group_words import (
    JOINS,
    GroupError,
    Heartbeat,
    Join,
    Joined,
    Leaving,
    OnJoined,
    OnSynced,
    Refused,
    Sync,
    Synced,
)


class GuestWords(Protocol):
    """What members of classic groups tell each other, for one namespace."""

    type: str  # of the protocols that are in these words

    def wants(self, metadata: bytes) -> tuple[frozenset[str], frozenset[int]]:
        """The topics that a member wants, and the partitions that it still reads; InvalidError if it cannot be read."""
        ...

    def assigned(self, assignment: bytes) -> frozenset[int]:
        """The partitions that a member was given; InvalidError if it cannot be read."""
        ...

    def assignment(self, partitions: frozenset[int]) -> bytes: ...


class Guests:
    """Of one balanced group."""

    def __init__(self, group: BalancedGroup, home: Home, words: GuestWords) -> None:
        self._group = group
        self._home = home
        self._words = words

    def take_in(self, members: Iterable[tuple[str, Join, bytes]]) -> None:
        """Those of the classic group that this one was, with what they were assigned; InvalidError if that cannot be.

        Nothing has happened then.
        """
        found = []
        taken: set[int] = set()
        for name, ask, assignment in members:
            topics, owned = self._wants(ask)
            assigned = self._words.assigned(assignment) if assignment else frozenset()
            taken |= assigned
            found.append((name, ask, topics, owned, assigned))
        for name, ask, topics, owned, assigned in found:
            # In the middle of a round nobody is assigned anything, and some still read what they had.
            self._group.take_in(name, ask, topics, assigned | (owned - taken))

    def give_back(self) -> list[tuple[str, Join, bytes]]:
        """Who they are, how each joined, and what it may still read; as `take_in` takes them."""
        return [
            (member.id, member.guest, self._words.assignment(member.assigned | member.giving_up))
            for member in self._group.guests()
            if member.guest is not None
        ]

    def _wants(self, ask: Join) -> tuple[frozenset[str], frozenset[int]]:
        """The topics, and what it still reads, by the protocol that it likes best; InvalidError if none can be read."""
        if ask.protocol_type != self._words.type or not ask.protocols:
            raise InvalidError(f"{ask.protocol_type} is no protocol that can be read")
        return self._words.wants(ask.protocols[0][1])

    def join(self, ask: Join, respond: OnJoined) -> None:
        try:
            respond(self._join(ask))
        except GroupError as error:
            respond(Joined(error.why, ask.member))

    def _join(self, ask: Join) -> Joined:
        try:
            topics, owned = self._wants(ask)
        except InvalidError:
            raise GroupError(Refused.INCONSISTENT_PROTOCOL) from None
        owner = None if ask.instance is None else self._group.instance(ask.instance)
        if ask.member:
            known = self._group.find(ask.member)
            if owner is not None and owner.id != ask.member:
                raise GroupError(Refused.FENCED_INSTANCE)
            if (known is not None and known.guest is None) or (known is None and ask.instance is not None):
                raise GroupError(Refused.UNKNOWN_MEMBER)
        elif ask.instance is None and ask.needs_id:
            return Joined(Refused.NEEDS_ID, self._home.new_id(ask.client_id))
        name = ask.member or self._home.new_id(ask.instance or ask.client_id)
        standing = self._group.heartbeat(
            Heartbeat(
                name,
                JOINS,
                may_read=lambda topic: False,  # of the topics that a pattern fits: guests have none
                instance=ask.instance,
                client_id=ask.client_id,
                host=ask.host,
                rebalance_ms=ask.rebalance_ms,
                topics=topics,
                owned=owned,
                guest=ask,
            )
        )
        return Joined(None, name, standing.epoch, ask.protocol_type, ask.protocols[0][0])

    def _known(self, name: str, instance: str | None) -> Member:
        member = self._group.member(name, instance)
        if member.guest is None:
            raise GroupError(Refused.UNKNOWN_MEMBER)
        return member

    def _heard(self, name: str, instance: str | None, generation: int) -> tuple[Member, Join]:
        member = self._known(name, instance)
        assert member.guest is not None
        if generation != member.epoch:
            raise GroupError(Refused.ILLEGAL_GENERATION)
        member.session.set(member.guest.session_ms)
        return member, member.guest

    def sync(self, ask: Sync, respond: OnSynced) -> None:
        respond(self._sync(ask))

    def _sync(self, ask: Sync) -> Synced:
        try:
            member, guest = self._heard(ask.member, ask.instance, ask.generation)
        except GroupError as error:
            return Synced(error.why)
        protocol = guest.protocols[0][0]
        if ask.protocol_type not in (None, guest.protocol_type) or ask.protocol not in (None, protocol):
            return Synced(Refused.INCONSISTENT_PROTOCOL)
        return Synced(None, guest.protocol_type, protocol, self._words.assignment(member.assigned))

    def heartbeat(self, name: str, instance: str | None, generation: int) -> Refused | None:
        try:
            member, _ = self._heard(name, instance, generation)
        except GroupError as error:
            return error.why
        return Refused.REBALANCING if self._group.must_join(member) else None

    def leave(self, leaving: Iterable[Leaving]) -> list[Refused | None]:
        return [self._leave(one) for one in leaving]

    def _leave(self, one: Leaving) -> Refused | None:
        try:
            if not one.member and one.instance is not None:
                member = self._group.instance(one.instance)  # an administrator puts it out, guest or not
                if member is None:
                    return Refused.UNKNOWN_MEMBER
            else:
                member = self._known(one.member, one.instance)
        except GroupError as error:
            return error.why
        self._group.put_out(member)
        return None
