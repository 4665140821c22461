"""Transient messages that do not fit into memory, in files that nobody needs after a restart.

A spill is one queue's, in offset order: messages go in at the back (new ones) or, many at once, at the front (paged
out from the head of the queue), and come out at the front. Blocks of messages are written as they fill; the index in
memory is a few numbers per block. A file goes when its last block has been read. The folder is emptied at start.

A block is the marshal of [(offset, size, key, value, headers, timestamp), ...]; its CRC is kept in memory, so what is
read back is what was written, or a DamageError is reported and the block is left out.
"""

import marshal
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from interlog.base import crc32c
from interlog.base.errors import DamageError
from interlog.core.leases import Message
from interlog.core.memory import OVERHEAD_BYTES
from interlog.journal.files import Files
from interlog.journal.record import Record

BLOCK_BYTES = 128 << 10
FILE_BYTES = 16 << 20


class SpillFolder:
    """Where all spills keep their files. Nothing in it is synced."""

    __slots__ = ("_number", "block_bytes", "file_bytes", "files", "folder", "report")

    def __init__(
        self,
        files: Files,
        folder: Path,
        report: Callable[[DamageError | OSError], None] = lambda error: None,
        block_bytes: int = BLOCK_BYTES,
        file_bytes: int = FILE_BYTES,
    ) -> None:
        self.files = files
        self.folder = folder
        self.report = report  # told of every block that could not be written or read back
        self.block_bytes = block_bytes
        self.file_bytes = file_bytes
        self._number = 0
        files.make_folder(folder)
        for name in files.list(folder):
            files.remove(folder / name)

    def new_path(self) -> Path:
        self._number += 1
        return self.folder / f"{self._number:016d}.spill"


class _Part:
    """One spill file and the index of its blocks; blocks before `next` have been consumed."""

    __slots__ = ("counts", "crcs", "firsts", "lengths", "next", "path", "position", "size", "sizes")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0  # bytes written
        self.next = 0
        self.position = 0  # of block `next`
        self.lengths = array("I")
        self.crcs = array("I")
        self.counts = array("I")
        self.sizes = array("Q")  # message bytes in the block
        self.firsts = array("Q")


class Spill:
    """One queue's spilled messages, in offset order."""

    __slots__ = ("_folder", "_front", "_parts", "_removed", "_tail", "_tail_bytes", "_write_at", "bytes", "count")

    def __init__(self, folder: SpillFolder) -> None:
        self._folder = folder
        self._front: deque[Message] = deque()  # read back, not yet taken
        self._parts: deque[_Part] = deque()
        self._tail: list[Message] = []  # not yet written
        self._tail_bytes = 0
        self._write_at = folder.block_bytes  # moves up when a write fails: try again when notably more has come
        self._removed: dict[int, int] = {}  # offset -> size of messages in blocks that are gone: skipped when read
        self.count = 0
        self.bytes = 0

    def resident_bytes(self) -> int:
        """About what is held in memory."""
        front = self._front
        return self._tail_bytes + (len(front) * (OVERHEAD_BYTES + front[0][4]) if front else 0)

    def push(self, message: Message) -> None:
        """Add a message with an offset beyond all others."""
        self._tail.append(message)
        size = message[4]
        self.count += 1
        self.bytes += size
        self._tail_bytes += size + OVERHEAD_BYTES
        if self._tail_bytes >= self._write_at:
            self._write_tail()

    def push_front(self, messages: Sequence[Message]) -> None:
        """Put back messages with offsets before all others, in order. OSError: nothing was put back."""
        everything = [*messages, *self._front]
        if not everything:
            return
        part = _Part(self._folder.new_path())
        block: list[Message] = []
        size = 0
        try:
            for message in everything:
                block.append(message)
                size += message[4] + OVERHEAD_BYTES
                if size >= self._folder.block_bytes:
                    self._write(part, block)
                    block, size = [], 0
            if block:
                self._write(part, block)
        except OSError:
            self._remove(part)
            raise
        self._front.clear()
        self._parts.appendleft(part)
        self.count += len(messages)
        self.bytes += sum(message[4] for message in messages)

    def peek(self) -> Message | None:
        """The first message; None if there is none."""
        while not self._front:
            if self._parts:
                self._load_block()
            elif self._tail:
                self._front.extend(self._tail)
                self._tail, self._tail_bytes = [], 0
            else:
                return None
        return self._front[0]

    def pop(self) -> Message:
        """Take the first message, after peek has shown it."""
        message = self._front.popleft()
        self.count -= 1
        self.bytes -= message[4]
        return message

    def take(self, offset: int) -> Message | None:
        """Take one message from wherever it stands; None if it is not here."""
        message = self._find(offset)
        if message is None:
            return None
        self.count -= 1
        self.bytes -= message[4]
        return message

    def clear(self) -> None:
        """Forget everything and remove the files."""
        for part in self._parts:
            self._remove(part)
        self._parts.clear()
        self._front.clear()
        self._tail, self._tail_bytes = [], 0
        self._write_at = self._folder.block_bytes
        self._removed.clear()
        self.count = self.bytes = 0

    def _find(self, offset: int) -> Message | None:
        for at, message in enumerate(self._front):
            if message[0] == offset:
                del self._front[at]
                return message
        for at, message in enumerate(self._tail):
            if message[0] == offset:
                del self._tail[at]
                self._tail_bytes -= message[4] + OVERHEAD_BYTES
                return message
        if offset in self._removed:
            return None
        for part in self._parts:
            position = part.position
            for block in range(part.next, len(part.lengths)):
                if part.firsts[block] > offset:
                    return None
                if part.firsts[block] <= offset:
                    for message in self._read(part, block, position) or ():
                        if message[0] == offset:
                            self._removed[offset] = message[4]
                            return message
                position += part.lengths[block]
        return None

    def _write_tail(self) -> None:
        parts, folder = self._parts, self._folder
        part = parts[-1] if parts and parts[-1].size < folder.file_bytes else _Part(folder.new_path())
        try:
            self._write(part, self._tail)
        except OSError as error:
            if not part.size:
                self._remove(part)
            self._write_at = self._tail_bytes + folder.block_bytes
            folder.report(error)
            return
        if not parts or parts[-1] is not part:
            parts.append(part)
        self._tail, self._tail_bytes = [], 0
        self._write_at = folder.block_bytes

    def _write(self, part: _Part, messages: Sequence[Message]) -> None:
        rows = []
        size = 0
        for offset, record, _, _, bytes_, _ in messages:
            rows.append((offset, bytes_, record.key, record.value, record.headers, record.timestamp_ms))
            size += bytes_
        data = marshal.dumps(rows)
        file = self._folder.files.open(part.path, write=True, create=not part.size)
        try:
            file.write((data,), part.size)
        finally:
            file.close()
        part.size += len(data)
        part.lengths.append(len(data))
        part.crcs.append(crc32c.crc32c(data))
        part.counts.append(len(rows))
        part.sizes.append(size)
        part.firsts.append(messages[0][0])

    def _read(self, part: _Part, block: int, position: int) -> list[Message] | None:
        """The messages of a block; None, and a report, if it cannot be read."""
        length = part.lengths[block]
        try:
            file = self._folder.files.open(part.path)
            try:
                data = file.read(length, position)
            finally:
                file.close()
        except OSError as error:
            self._folder.report(error)
            return None
        if crc32c.crc32c(data) != part.crcs[block]:
            what = f"{part.counts[block]} spilled transient messages are not as they were written."
            self._folder.report(DamageError(str(part.path), position, what, "They are lost. Check the disk."))
            return None
        return [
            (offset, Record(key, value, headers, timestamp_ms), 0, False, size, -1)
            for offset, size, key, value, headers, timestamp_ms in marshal.loads(data)
        ]

    def _load_block(self) -> None:
        """Bring the first block into memory and be done with it on disk."""
        part = self._parts[0]
        block = part.next
        messages = self._read(part, block, part.position)
        removed = self._removed
        if messages is None:
            first, beyond = part.firsts[block], self._first_beyond(block)
            gone = {o: size for o, size in removed.items() if first <= o and (beyond is None or o < beyond)}
            self.count -= part.counts[block] - len(gone)
            self.bytes -= part.sizes[block] - sum(gone.values())
            for offset in gone:
                del removed[offset]
        elif removed:
            self._front.extend(m for m in messages if removed.pop(m[0], None) is None)
        else:
            self._front.extend(messages)
        part.next += 1
        part.position += part.lengths[block]
        if part.next == len(part.lengths):
            self._parts.popleft()
            self._remove(part)

    def _first_beyond(self, block: int) -> int | None:
        """Where the block after this one of the first part begins; None if it is the last on disk."""
        part = self._parts[0]
        if block + 1 < len(part.firsts):
            return part.firsts[block + 1]
        return self._parts[1].firsts[self._parts[1].next] if len(self._parts) > 1 else None

    def _remove(self, part: _Part) -> None:
        """Remove the file; one that cannot be removed now goes at the next start."""
        try:
            self._folder.files.remove(part.path)
        except OSError as error:
            self._folder.report(error)
