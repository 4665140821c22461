"""What was asked of a broker over all its lives, tick by tick, and the model's state after any of them.

A tick is recorded before it is committed (it is then `attempted`), and noted as durable when its ticket says so. A
recovered broker holds the first k ticks, `durable` <= k <= `attempted`: see `settle`.
"""

import json
from typing import Any

from interlog.base.clock import ManualClock
from tests.crash.model import Model, Op, Wrong


class History:
    def __init__(self) -> None:
        self.ticks: list[list[Op]] = []
        self.crashes: list[int] = []  # after how many ticks the broker ended, each time
        self.durable = 0  # the newest tick that was answered as safe
        self.now_ms = ManualClock().now_ms()
        self.next_number = 1  # of messages: never used again, also when a tick is lost

    @property
    def attempted(self) -> int:
        return len(self.ticks)

    def model(self, upto: int) -> Model:
        """The state after so many ticks, as a broker that starts then must have it."""
        model = Model()
        crashes = iter([*[crash for crash in self.crashes if crash < upto], upto])
        crash = next(crashes)
        for done, ops in enumerate(self.ticks[:upto]):
            while crash == done:
                model.crash()
                crash = next(crashes)
            for op in ops:
                model.apply(op)
            model.end_tick()
        model.crash()
        return model

    def settle(self, tick: int) -> Model:
        """A broker came back with the first `tick` ticks: nothing else ever happened. The model it must agree with."""
        if not self.durable <= tick <= self.attempted:
            raise Wrong(
                f"the broker came back with {tick} ticks; {self.durable} were answered as safe, "
                f"{self.attempted} were attempted"
            )
        del self.ticks[tick:]
        self.crashes = [crash for crash in self.crashes if crash < tick]
        model = self.model(tick)
        self.crashes.append(tick)
        return model

    # -- across processes

    def export(self) -> str:
        return json.dumps([self.ticks, self.crashes, self.durable, self.next_number, self.now_ms])

    @classmethod
    def load(cls, text: str) -> "History":
        self = cls()
        ticks, self.crashes, self.durable, self.next_number, self.now_ms = json.loads(text)
        self.ticks = [[tuple(op) for op in ops] for ops in ticks]
        return self

    def take_event(self, line: str | bytes) -> None:
        """What a child said: a tick it is about to commit, or one that became durable."""
        event: list[Any] = json.loads(line)
        if event[0] == "tick":
            self.ticks.append([tuple(op) for op in event[1]])
            self.next_number, self.now_ms = event[2:]
        elif event[0] == "durable":
            self.durable = max(self.durable, event[1])
        elif event[0] == "settle":
            self.settle(event[1])
