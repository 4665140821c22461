"""Which conversations there are, and which of them are known to differ, and why."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.peers.differences.talk import Talk

Held = Callable[[Talk], None]


@dataclass(frozen=True)
class Conversation:
    name: str
    hold: Held
    differs: str  # why the answers are known to differ; nothing: they do not


CONVERSATIONS: list[Conversation] = []


def conversation(differs: str = "") -> Callable[[Held], Held]:
    def register(hold: Held) -> Held:
        CONVERSATIONS.append(Conversation(hold.__name__, hold, differs))
        return hold

    return register
