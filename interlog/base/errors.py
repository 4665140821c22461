"""What can go wrong, as classes. Every message is a sentence a person can act on.

Faces turn these into their protocol's own error codes; the command line prints the sentence and exits.
"""


class InterlogError(Exception):
    """The root of all errors that Interlog raises on purpose."""


class SettingError(InterlogError):
    """A setting is wrong: names the key, the value and what is allowed."""


class FolderError(InterlogError):
    """The data folder cannot be used: missing, unwritable, in use, or written by a newer version."""


class DamageError(InterlogError):
    """Bytes that must be whole are not: names the file, the position and what to do."""

    def __init__(self, file: str, position: int, what: str, advice: str = "") -> None:
        self.file = file
        self.position = position
        self.what = what
        self.advice = advice
        super().__init__(f"{file} at byte {position}: {what}" + (f" {advice}" if advice else ""))


class FormatError(InterlogError):
    """Bytes that should be an envelope, a batch or an index are not one."""


class LimitError(InterlogError):
    """A limit was hit: names it and its value."""


class NotFoundError(InterlogError):
    """No such namespace, topic, queue, group or partition."""


class ExistsError(InterlogError):
    """The name is taken."""


class InvalidError(InterlogError):
    """A name, an argument or an offset that cannot be accepted."""


class InequivalentError(InvalidError):
    """Something of this name exists and is not what was asked for: names the attribute, what was wanted and what is."""

    def __init__(self, subject: str, what: str, wanted: object, found: object) -> None:
        self.what = what
        self.wanted = wanted
        self.found = found
        super().__init__(f"{subject} exists, and its {what} is {found!r}, not {wanted!r}")


class InUseError(InterlogError):
    """It cannot be taken or removed: somebody uses it."""


class NotEmptyError(InterlogError):
    """It cannot be removed: it holds messages."""


class LockedError(InterlogError):
    """It belongs to another connection alone."""


class RefusedError(InterlogError):
    """Who asks may not: wrong credentials, or no permission."""


class OffsetOutOfRangeError(InvalidError):
    """The offset lies before the log start or beyond the log end."""

    def __init__(self, offset: int, log_start: int, log_end: int) -> None:
        self.offset = offset
        self.log_start = log_start
        self.log_end = log_end
        super().__init__(f"offset {offset} is outside {log_start} to {log_end}")


class TimestampError(InvalidError):
    """A record's time lies further from the broker's than its topic allows."""


class ReadOnlyError(InterlogError):
    """The journal no longer accepts writes; the message says why."""


class DiskFullError(InterlogError):
    """There is no room on the disk for new messages; consuming goes on and makes room."""
