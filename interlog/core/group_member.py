"""A member of a balanced group: what it wants, what it has, and how far it is on its way to what it is to have."""

from collections.abc import Callable
from enum import Enum
from typing import Final

from interlog.core.deadlines import Deadline
from interlog.core.group_alarm import Alarm
from interlog.core.group_words import JOINS, Join
from interlog.core.name_pattern import NamePattern

NOTHING: Final[frozenset[int]] = frozenset()
LEAST_REBALANCE_MS: Final = 1


class Phase(Enum):
    """How far a member is on its way to its target."""

    STABLE = "stable"
    GIVING_UP = "giving up"  # it was told to, and has not said that it did
    WAITING = "waiting"  # others hold what it is to have


class Member:
    __slots__ = (
        "assigned",
        "assignor",
        "client_id",
        "epoch",
        "epoch_before",
        "giving_up",
        "guest",
        "host",
        "id",
        "instance",
        "is_new",
        "may_read",
        "pattern",
        "phase",
        "rack",
        "rebalance_due",
        "rebalance_ms",
        "session",
        "target",
        "topics",
        "user",
        "wanted",
    )

    def __init__(self, name: str, session: Alarm) -> None:
        self.id = name
        self.session = session
        self.instance: str | None = None
        self.guest: Join | None = None  # how it joined, if it speaks as in a classic group
        self.rack: str | None = None
        self.client_id = ""
        self.host = ""
        self.user = ""
        self.may_read: Callable[[str], bool] = lambda topic: False
        self.rebalance_ms = LEAST_REBALANCE_MS
        self.rebalance_due: Deadline | None = None
        self.assignor: str | None = None
        self.topics: frozenset[str] = frozenset()
        self.pattern: NamePattern | None = None
        self.wanted: frozenset[str] = frozenset()  # the topics, and those that the pattern fits
        self.phase = Phase.STABLE
        self.is_new = True  # no target was made for it
        self.epoch = JOINS
        self.epoch_before = JOINS
        self.assigned = NOTHING
        self.giving_up = NOTHING
        self.target = NOTHING

    def move_to(self, epoch: int) -> None:
        self.epoch_before, self.epoch = self.epoch, epoch

    def stop(self) -> None:
        self.session.cancel()
        self.stop_rebalance()

    def stop_rebalance(self) -> None:
        if self.rebalance_due is not None:
            self.rebalance_due.cancel()
            self.rebalance_due = None
