"""An alarm: one call to come, that is mostly put off. Sessions of members are such.

alarm = Alarm(home, call)
alarm.set(45_000)    # and again with each heartbeat: that costs nothing
alarm.cancel()
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from interlog.base.clock import Clock
from interlog.core.deadlines import Deadline, Deadlines


@dataclass(frozen=True, slots=True)
class GroupSettings:
    rebalance_delay_ms: int = 0  # how long the first member of a group waits for more
    new_member_ms: int = 300_000  # how long a member that was never told a generation is believed to wait for it
    members: int = 10_000  # of one group
    session_ms: int = 45_000  # of a member of a balanced group,
    heartbeat_ms: int = 3_000  # which sends a heartbeat so often,
    settling_heartbeat_ms: int = 500  # and so often while members give up and take over
    retention_ms: int = 0  # how long the cursors of a group without members are kept; 0: for ever
    groups: int = 100_000
    share_session_ms: int = 45_000  # of a member of a share group,
    share_heartbeat_ms: int = 5_000  # which sends a heartbeat so often
    share_lock_ms: int = 30_000  # how long a member holds what it takes
    share_deliveries: int = 5  # after so many a record is not delivered again
    share_locks: int = 2_000  # records of a partition that are looked after one by one in a share group


class Home:
    """What groups live on: time, settings, and names that nobody else has."""

    def __init__(self, clock: Clock, deadlines: Deadlines, rng: random.Random) -> None:
        self.clock = clock
        self.deadlines = deadlines
        self.settings = GroupSettings()
        self._rng = rng

    def new_id(self, prefix: str = "") -> str:
        made = str(UUID(int=self._rng.getrandbits(128), version=4))
        return f"{prefix}-{made}" if prefix else made


class Alarm:
    __slots__ = ("_call", "_deadline", "_due", "_home")

    def __init__(self, home: Home, call: Callable[[], None]) -> None:
        self._home = home
        self._call = call
        self._due = 0.0
        self._deadline: Deadline | None = None

    def set(self, ms: int) -> None:
        """Call in so many milliseconds, and not when it was to be before."""
        self._due = self._home.clock.monotonic() + ms / 1000
        if self._deadline is not None:
            if self._deadline.when <= self._due:
                return
            self._deadline.cancel()
        self._deadline = self._home.deadlines.after(ms, self._ring)

    def cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _ring(self) -> None:
        self._deadline = None
        left = self._due - self._home.clock.monotonic()
        if left > 0:
            self._deadline = self._home.deadlines.after(left * 1000, self._ring)
        else:
            self._call()
