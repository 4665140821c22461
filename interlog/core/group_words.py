"""The words of groups: what their members ask, what they are told, what states there are, and why one is refused.

Members of a classic group agree among themselves who reads what: one of them, the leader, assigns, and the group only
carries what they say to each other, without looking inside. In a balanced group the broker assigns. In a share group it
does so too, and several members may read the same partition. Partitions are the catalog's numbers.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from interlog.base.errors import InterlogError

LEAVES: Final = -1  # the epoch of a member of a balanced group that goes,
LEAVES_FOR_NOW: Final = -2  # and of one with an instance that will be back
JOINS: Final = 0


class Refused(Enum):
    """Why a member is not served."""

    UNKNOWN_MEMBER = "there is no such member"
    NEEDS_ID = "a member comes back with the id that it was given"
    ILLEGAL_GENERATION = "the generation is over"
    REBALANCING = "the group is being shared out anew"
    INCONSISTENT_PROTOCOL = "the members have no protocol in common"
    FULL = "the group is full"
    FENCED_INSTANCE = "another member has taken over the instance"
    UNRELEASED_INSTANCE = "the instance belongs to a member that is still there"
    FENCED_EPOCH = "the member's epoch is not the one that the group knows"
    STALE_EPOCH = "the member has got a newer epoch"
    EPOCHS_NEEDED = "members of this group must be known by their epoch"
    UNKNOWN_ASSIGNOR = "there is no such assignor"
    BAD_PATTERN = "the pattern cannot be read"
    OTHER_KIND = "the group is of the other kind"
    NOT_FOUND = "there is no such group"
    NOT_EMPTY = "the group has members"


class GroupError(InterlogError):
    """Raised inside the groups; callers get `Refused`."""

    def __init__(self, why: Refused, sentence: str = "") -> None:
        self.why = why
        super().__init__(sentence or f"{why.value}.")


class GroupKind(Enum):
    CLASSIC = "classic"
    BALANCED = "balanced"
    SHARE = "share"


class GroupState(Enum):
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"  # the members are waited for
    COMPLETING = "CompletingRebalance"  # what the leader assigns is waited for
    STABLE = "Stable"
    DEAD = "Dead"
    ASSIGNING = "Assigning"  # balanced: there is something new, and nobody was told yet
    RECONCILING = "Reconciling"  # balanced: members give up and take over


# From which states a classic group comes into another.
COMES_FROM: Final[dict[GroupState, frozenset[GroupState]]] = {
    GroupState.EMPTY: frozenset((GroupState.PREPARING,)),
    GroupState.PREPARING: frozenset((GroupState.STABLE, GroupState.COMPLETING, GroupState.EMPTY)),
    GroupState.COMPLETING: frozenset((GroupState.PREPARING,)),
    GroupState.STABLE: frozenset((GroupState.COMPLETING,)),
    GroupState.DEAD: frozenset(state for state in GroupState),
}


# -- classic groups


class Join(NamedTuple):
    member: str  # empty: it has no id yet
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]  # name, and what the leader is to know; the best first
    session_ms: int
    rebalance_ms: int
    instance: str | None = None
    client_id: str = ""
    host: str = ""
    needs_id: bool = False  # it can be told its id first, and come again with it
    can_skip: bool = False  # it can be told that it leads and need not assign


class JoinedMember(NamedTuple):
    member: str
    instance: str | None
    metadata: bytes


class Joined(NamedTuple):
    refused: Refused | None
    member: str
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[JoinedMember, ...] = ()  # for the leader
    skip: bool = False


class Sync(NamedTuple):
    member: str
    generation: int
    instance: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()  # of the leader, by member


class Synced(NamedTuple):
    refused: Refused | None
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


OnJoined = Callable[[Joined], None]
OnSynced = Callable[[Synced], None]


class Leaving(NamedTuple):
    member: str
    instance: str | None = None


# -- balanced groups


class Heartbeat(NamedTuple):
    """Of a member of a balanced or a share group. What is None has not changed since the last one."""

    member: str
    epoch: int
    may_read: Callable[[str], bool]  # of the topics that a pattern fits
    user: str = ""
    instance: str | None = None
    rack: str | None = None
    client_id: str = ""
    host: str = ""
    rebalance_ms: int = -1
    topics: frozenset[str] | None = None
    pattern: str | None = None
    assignor: str | None = None
    owned: frozenset[int] | None = None  # the partitions that it reads now
    full: bool = False  # it wants to be told everything
    guest: Join | None = None  # of a member who speaks as in a classic group


class Standing(NamedTuple):
    """What a member of a balanced or a share group is told."""

    refused: Refused | None
    member: str
    epoch: int = 0
    assigned: frozenset[int] | None = None  # None: as before
    next_ms: int = 0  # when the next heartbeat is due
    sentence: str | None = None


# -- looking


class MemberView(NamedTuple):
    member: str
    instance: str | None
    client_id: str
    host: str
    metadata: bytes = b""
    assignment: bytes = b""
    rack: str | None = None
    epoch: int = 0
    topics: tuple[str, ...] = ()
    pattern: str = ""
    assigned: frozenset[int] = frozenset()
    target: frozenset[int] = frozenset()
    guest: bool = False  # a member of a balanced group who speaks as in a classic one


class GroupView(NamedTuple):
    name: str
    kind: GroupKind
    state: GroupState
    protocol_type: str = ""
    protocol: str = ""  # or the assignor
    generation: int = 0  # or epoch
    target_epoch: int = 0
    members: tuple[MemberView, ...] = ()
