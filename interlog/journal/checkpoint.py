"""The state in SQLite, with the journal position it holds for. Tables come from the sections; see `docs/guide`.

`meta.db` is written in one transaction a checkpoint, on a worker's thread. `meta.previous.db` is a whole copy of an
earlier one; the journal is kept from that one's position on, so that either file alone is enough to start from.
Every row carries a CRC32C, so that a flipped bit is found and not believed.
"""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from interlog.base import crc32c
from interlog.base.errors import DamageError, FolderError
from interlog.journal.files import File, Files
from interlog.journal.section import Changes, Row, Section, Table

FORMAT = 1
NAME = "meta.db"
# What SQLite raises of a damaged file; the second where its own sentence about the damage holds damaged bytes.
_SPOILT = (sqlite3.DatabaseError, UnicodeDecodeError)
PREVIOUS = "meta.previous.db"
_MOST_VALUES = 900  # in one statement: what every SQLite takes
_NO_ROOM_BESIDE = frozenset(
    (
        sqlite3.SQLITE_IOERR_SHMOPEN,
        sqlite3.SQLITE_IOERR_SHMSIZE,
        sqlite3.SQLITE_IOERR_SHMMAP,
        sqlite3.SQLITE_IOERR_SHMLOCK,
        sqlite3.SQLITE_IOERR_WRITE,
    )
)


@dataclass(frozen=True, slots=True)
class Mark:
    """Where in the journal a checkpoint holds: all envelopes up to `sequence` are in it, none after."""

    sequence: int = 0
    file: int = 0  # the journal file in which the next envelope follows, and where
    position: int = 0
    epoch: int = 0
    time_ms: int = 0
    clean: int = 0  # the broker stopped in good order, with nothing after this mark


def row_crc(row: Sequence[object]) -> int:
    crc = 0
    for value in row:
        if isinstance(value, bytes):
            crc = crc32c.crc32c(value, crc32c.crc32c(b"b%d:" % len(value), crc))
        else:
            crc = crc32c.crc32c(repr(value).encode() + b";", crc)
    return crc


class Checkpoint:
    """One meta.db. `save` may be called from any one thread at a time; `read` from the owner's thread."""

    def __init__(self, path: Path, tables: Iterable[Table]) -> None:
        self.path = path
        self.tables = {table.name: table for table in tables}
        self.mark = Mark()
        self.folder_id = ""
        self._lock = threading.Lock()
        self._writer = _connect(path)
        self._reader: sqlite3.Connection | None = None
        self._file: File | None = None  # for copies

    @classmethod
    def create(cls, path: Path, tables: Iterable[Table], folder_id: str) -> "Checkpoint":
        """A new, empty one; what stood there before goes."""
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        self = cls(path, tables)
        self.folder_id = folder_id
        try:
            self._writer.execute("PRAGMA journal_mode=WAL")
            self._writer.execute("BEGIN IMMEDIATE")
            for table in self.tables.values():
                self._writer.execute(_create_sql(table))
            self._writer.execute("CREATE TABLE about (key TEXT PRIMARY KEY, value, crc INTEGER) WITHOUT ROWID")
            self._write_about()
            self._writer.execute("COMMIT")
        except BaseException:
            self.close()
            raise
        return self

    @classmethod
    def open(cls, path: Path, tables: Iterable[Table], folder_id: str) -> "Checkpoint":
        """The one that is there. DamageError if it cannot be believed, FolderError if it is not of this folder."""
        if not path.exists():
            raise DamageError(str(path), 0, "the checkpoint is missing.")
        if not path.is_file():
            raise DamageError(str(path), 0, "the checkpoint is not a file.")
        try:
            self = cls(path, tables)
        except _SPOILT as error:
            _raise_if_sound(path, error)
            raise DamageError(str(path), 0, f"the checkpoint cannot be read: {error}.") from None
        try:
            self._read_about(folder_id)
            known = {name for (name,) in self._writer.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            for table in self.tables.values():
                if table.name not in known:
                    self._writer.execute(_create_sql(table))
            (verdict,) = self._writer.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise DamageError(str(path), 0, f"the checkpoint is damaged: {verdict}.")
        except _SPOILT as error:
            self.close()
            _raise_if_sound(path, error)
            raise DamageError(str(path), 0, f"the checkpoint cannot be read: {error}.") from None
        except BaseException:
            self.close()
            raise
        return self

    def _read_about(self, folder_id: str) -> None:
        about: dict[str, object] = {}
        for key, value, crc in self._writer.execute("SELECT key, value, crc FROM about"):
            if row_crc((key, value)) != crc:
                raise DamageError(str(self.path), 0, f"the checkpoint's row about {key} does not match its CRC.")
            about[key] = value
        version = about.get("format")
        if not isinstance(version, int):
            raise DamageError(str(self.path), 0, "the checkpoint does not say its format.")
        if version > FORMAT:
            raise FolderError(
                f"The checkpoint {self.path} was written by a newer version of Interlog (format {version}, "
                f"this version knows {FORMAT}). Start that version, or give this one another folder with --data."
            )
        if about.get("folder_id") != folder_id:
            raise DamageError(str(self.path), 0, "the checkpoint belongs to another data folder.")
        self.folder_id = folder_id
        fields = {key: about.get(key) for key in Mark.__slots__}
        if not all(isinstance(value, int) for value in fields.values()):
            raise DamageError(str(self.path), 0, "the checkpoint does not say what journal position it holds for.")
        self.mark = Mark(**{key: int(str(value)) for key, value in fields.items()})

    def _write_about(self) -> None:
        about: dict[str, int | str] = {"format": FORMAT, "folder_id": self.folder_id, **asdict(self.mark)}
        self._writer.executemany(
            "INSERT OR REPLACE INTO about VALUES (?, ?, ?)",
            [(key, value, row_crc((key, value))) for key, value in about.items()],
        )

    def found_tables(self) -> list[Table]:
        """The tables that are there, whoever made them."""
        found = []
        try:
            names = self._writer.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name != 'about'")
            for (name,) in names.fetchall():
                columns = self._writer.execute("SELECT name, type, pk FROM pragma_table_info(?)", (name,)).fetchall()
                keys = sum(1 for _, _, key in columns if key)
                found.append(Table(name, tuple((column, sql) for column, sql, _ in columns[:-1]), keys))
        except _SPOILT as error:
            raise self._unreadable("sqlite_master", error) from None
        return found

    def rows(self, table: Table) -> Iterator[Row]:
        """All rows of a table in key order, their CRCs checked."""
        order = ", ".join(name for name, _ in table.columns[: table.keys])
        try:
            for row in self._writer.execute(f"SELECT * FROM {table.name} ORDER BY {order}"):
                yield self._checked(table, row)
        except _SPOILT as error:
            raise self._unreadable(table.name, error) from None

    def load(self, sections: Iterable[Section]) -> None:
        for section in sections:
            if not section.table.lazy:
                section.load(self.rows(section.table))

    def read_table(self, table: Table, after: Row, limit: int) -> list[Row]:
        """Up to limit rows whose key comes after the one given, in key order: how lazy tables are read."""
        keys = ", ".join(name for name, _ in table.columns[: table.keys])
        marks = ", ".join("?" * table.keys)
        try:
            if self._reader is None:
                self._reader = _connect(self.path)
            found = self._reader.execute(
                f"SELECT * FROM {table.name} WHERE ({keys}) > ({marks}) ORDER BY {keys} LIMIT ?", (*after, limit)
            )
            return [self._checked(table, row) for row in found]
        except _SPOILT as error:
            raise self._unreadable(table.name, error) from None

    def _unreadable(self, table: str, error: Exception) -> DamageError:
        _raise_if_sound(self.path, error)
        return DamageError(str(self.path), 0, f"table {table} cannot be read: {error}.")

    def _checked(self, table: Table, row: Row) -> Row:
        if row_crc(row[:-1]) != row[-1]:
            key = ", ".join(str(value) for value in row[: table.keys])
            raise DamageError(str(self.path), 0, f"table {table.name}, row {key}: the row does not match its CRC.")
        return row[:-1]

    def save(self, changes: Iterable[tuple[Table, Changes]], mark: Mark) -> None:
        """All or nothing. OSError or sqlite3.Error if it could not be done; then nothing has changed."""
        with self._lock:
            before = self.mark
            writer = self._writer
            try:
                writer.execute("BEGIN IMMEDIATE")
                for table, change in changes:
                    self._save_table(table, change)
                self.mark = mark
                self._write_about()
                writer.execute("COMMIT")
            except BaseException:
                self.mark = before
                if writer.in_transaction:
                    writer.execute("ROLLBACK")
                raise

    def _save_table(self, table: Table, change: Changes) -> None:
        keys = [name for name, _ in table.columns[: table.keys]]
        if change.below is not None:
            names, marks = ", ".join(keys), ", ".join("?" * len(keys))
            self._writer.execute(f"DELETE FROM {table.name} WHERE ({names}) <= ({marks})", change.below)
        by_length: dict[int, list[Row]] = {}
        for removal in change.removals:
            by_length.setdefault(len(removal), []).append(removal)
        for length, removals in by_length.items():
            where = " AND ".join(f"{name} = ?" for name in keys[:length])
            self._writer.executemany(f"DELETE FROM {table.name} WHERE {where}", removals)
        # Many rows in a statement: after each statement this thread must get the interpreter back from a busy loop.
        width = len(table.columns) + 1
        at_once = max(_MOST_VALUES // width, 1)
        one = f"({', '.join('?' * width)})"
        for start in range(0, len(change.rows), at_once):
            rows = change.rows[start : start + at_once]
            values = [value for row in rows for value in (*row, row_crc(row))]
            self._writer.execute(f"INSERT OR REPLACE INTO {table.name} VALUES {', '.join([one] * len(rows))}", values)

    def copy(self, files: Files, target: Path) -> None:
        """A whole copy of the last saved state, put in target's place in one step."""
        with self._lock:
            busy, _, _ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise OSError(f"{self.path} is being read by another program; its copy was put off")
            # Closing any descriptor of a file drops the locks that SQLite holds on it in this process: this one is
            # kept until the connections are closed.
            self._file = self._file or files.open(self.path)
            copy_whole(files, self._file, target)

    def close(self) -> None:
        for connection in (self._reader, self._writer):
            if connection is not None:
                connection.close()
        self._reader = None
        if self._file is not None:
            self._file.close()
            self._file = None


def _raise_if_sound(path: Path, error: Exception) -> None:
    """FolderError where SQLite failed and it was not the file's fault: then no other copy would do better."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return
    match code & 0xFF:
        case sqlite3.SQLITE_FULL:
            what = "there is no room on the disk. Make room"
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            what = "another program has it open and locked. Close that program"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            what = "it may not be written by this user, or the disk is read-only. Mend that"
        case sqlite3.SQLITE_CANTOPEN:
            what = "files beside it cannot be made: the disk may be full, or the folder not writable. Mend that"
        case sqlite3.SQLITE_IOERR if code in _NO_ROOM_BESIDE:
            what = "files beside it cannot be made: the disk may be full or failing. Mend that"
        case _:
            return
    raise FolderError(f"The checkpoint {path} cannot be used: {what}, then start again; it has not been changed.")


def copy_whole(files: Files, source: File, target: Path) -> None:
    """Put a copy of a file in target's place, in one step."""
    temporary = target.with_name(target.name + ".new")
    files.remove(temporary)
    copy = files.open(temporary, create=True)
    try:
        files.copy(source, 0, copy, 0, source.size())
        copy.sync()
    finally:
        copy.close()
    files.rename(temporary, target)
    files.sync_folder(target.parent)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    try:
        # A checkpoint must last before the journal that it replaces goes: FULL syncs every commit.
        connection.execute("PRAGMA synchronous=FULL")  # reads the schema, so a damaged file may show here
    except BaseException:
        connection.close()
        raise
    return connection


def _create_sql(table: Table) -> str:
    columns = ", ".join(f"{name} {sql}" for name, sql in table.columns)
    keys = ", ".join(name for name, _ in table.columns[: table.keys])
    return f"CREATE TABLE {table.name} ({columns}, crc INTEGER, PRIMARY KEY ({keys})) WITHOUT ROWID"


@dataclass(slots=True)
class CheckpointReport:
    """What reading a whole checkpoint came to. `rows` by table, where the table could be read."""

    mark: Mark | None = None
    rows: dict[str, list[Row]] | None = None
    damage: DamageError | None = None


def read_checkpoint(path: Path, folder_id: str, keep: Sequence[str]) -> CheckpointReport:
    """Read all of a checkpoint and check all its CRCs; `keep` names the tables whose rows are wanted.

    SQLite may write to what it reads: give it a copy where nothing may be changed.
    """
    report = CheckpointReport()
    try:
        checkpoint = Checkpoint.open(path, (), folder_id)
    except DamageError as error:
        report.damage = error
        return report
    try:
        report.mark = checkpoint.mark
        report.rows = {}
        for table in checkpoint.found_tables():
            rows = report.rows.setdefault(table.name, [])
            for row in checkpoint.rows(table):
                if table.name in keep:
                    rows.append(row)
    except DamageError as error:
        report.damage = error
    finally:
        checkpoint.close()
    return report
