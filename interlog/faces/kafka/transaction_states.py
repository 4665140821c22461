"""What Kafka calls the states of a transaction. Those between open and ended, which it knows too, never last here."""

from typing import Final

from interlog.core.transactions import State

NAMES: Final = {
    State.EMPTY: "Empty",
    State.ONGOING: "Ongoing",
    State.COMMITTED: "CompleteCommit",
    State.ABORTED: "CompleteAbort",
}
KNOWN: Final = frozenset((*NAMES.values(), "PrepareCommit", "PrepareAbort", "PrepareEpochFence", "Dead"))
