"""Leader epochs: one a start of the broker. Who asks with another one has read from a broker that is no longer it."""

from interlog.core.broker import Core
from interlog.faces.kafka.errors import ErrorCode
from interlog.journal.partition import Partition

NO_EPOCH = -1


def check_epoch(core: Core, told: int) -> ErrorCode:
    """Whether the epoch that a client takes for the current one is it; those that know none are welcome."""
    if told == NO_EPOCH or told == core.storage.epoch:
        return ErrorCode.NONE
    return ErrorCode.FENCED_LEADER_EPOCH if told < core.storage.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH


def end_of_epoch(core: Core, partition: Partition, epoch: int) -> tuple[int, int]:
    """The largest epoch not after this one, and where it ended; -1 twice if there is none."""
    if not 0 <= epoch <= core.storage.epoch:
        return NO_EPOCH, NO_EPOCH
    found = partition.end_offset_for_epoch(epoch)
    if found is None:
        return epoch, partition.log_end  # nothing was written in it, nor since
    return found


def epoch_of(core: Core, partition: Partition, offset: int) -> int:
    """In which epoch the batch at an offset was written; at the log's end, the current one."""
    if offset >= partition.log_end:
        return core.storage.epoch
    found = NO_EPOCH
    for epoch, first in partition.epochs:
        if first > offset:
            break
        found = epoch
    return found
