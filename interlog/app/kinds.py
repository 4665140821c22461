"""Kinds of settings: how a value is read, what is allowed, how it is shown.

`parse` takes what a TOML file, an environment variable, a flag or a Python call gives and returns the value, or
raises ValueError with the end of a sentence that begins with the setting's name and value.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Protocol


class Kind(Protocol):
    @property
    def allowed(self) -> str:
        """What may be given, in words."""
        ...

    @property
    def placeholder(self) -> str:
        """One word for it in the help."""
        ...

    def parse(self, value: object) -> Any: ...

    def text(self, value: Any) -> str:
        """The value as a person would write it."""
        ...


class Choice:
    placeholder = "NAME"

    def __init__(self, *names: str) -> None:
        self.names = names

    @property
    def allowed(self) -> str:
        return " or ".join([", ".join(self.names[:-1]), self.names[-1]])

    def parse(self, value: object) -> str:
        if isinstance(value, str) and value in self.names:
            return value
        raise ValueError(f"must be {self.allowed}.")

    def text(self, value: str) -> str:
        return value


class Port:
    """A port number; 0 lets the system choose; None is off. What is not built yet can only be off."""

    placeholder = "N"

    def __init__(self, protocol: str, built: bool = True) -> None:
        self.protocol = protocol
        self.built = built

    @property
    def allowed(self) -> str:
        return "0 (the system chooses) to 65535, or off" if self.built else "off (not served by this version)"

    def parse(self, value: object) -> int | None:
        if value is None or value == "off":
            return None
        port = _whole(value)
        if port is None or not 0 <= port <= 65535:
            raise ValueError(f"must be {self.allowed}.")
        if not self.built:
            raise ValueError(
                f"cannot be served: this version of Interlog does not speak {self.protocol}. Leave it off."
            )
        return port

    def text(self, value: int | None) -> str:
        return "off" if value is None else str(value)


class Bytes:
    placeholder = "BYTES"
    units: Final = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

    def __init__(self, least: int, most: int) -> None:
        self.least = least
        self.most = most

    @property
    def allowed(self) -> str:
        return f"{self.text(self.least)} to {self.text(self.most)}, as a number of bytes or with KiB, MiB, GiB or TiB"

    def parse(self, value: object) -> int:
        size = _with_unit(value, self.units)
        if size is None or not self.least <= size <= self.most:
            raise ValueError(f"must be {self.allowed}.")
        return size

    def text(self, value: int) -> str:
        for unit, factor in reversed(self.units.items()):
            if unit and unit != "B" and value and value % factor == 0:
                return f"{value // factor}{unit}"
        return str(value)


class Duration:
    placeholder = "TIME"
    units: Final = {"": 1, "ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}

    def __init__(self, least: int, most: int, zero: bool = False) -> None:
        self.least = least
        self.most = most
        self.zero = zero

    @property
    def allowed(self) -> str:
        zero = "0, or " if self.zero else ""
        limits = f"{self.text(self.least)} to {self.text(self.most)}"
        return f"{zero}{limits}, as a number of milliseconds or with ms, s, min, h or d"

    def parse(self, value: object) -> int:
        time_ms = _with_unit(value, self.units)
        if time_ms is None or not (self.least <= time_ms <= self.most or (self.zero and time_ms == 0)):
            raise ValueError(f"must be {self.allowed}.")
        return time_ms

    def text(self, value: int) -> str:
        for unit, factor in reversed(self.units.items()):
            if unit and value and value % factor == 0:
                return f"{value // factor}{unit}"
        return str(value)


class Number:
    placeholder = "N"

    def __init__(self, least: int, most: int) -> None:
        self.least = least
        self.most = most

    @property
    def allowed(self) -> str:
        return f"{self.least} to {self.most}"

    def parse(self, value: object) -> int:
        number = _whole(value)
        if number is None or not self.least <= number <= self.most:
            raise ValueError(f"must be {self.allowed}.")
        return number

    def text(self, value: int) -> str:
        return str(value)


class Text:
    """A line of text. A secret one is never shown, not even when it is wrong."""

    placeholder = "TEXT"

    def __init__(self, most_bytes: int, secret: bool = False) -> None:
        self.most_bytes = most_bytes
        self.secret = secret

    @property
    def allowed(self) -> str:
        return f"1 to {self.most_bytes} bytes of text"

    def parse(self, value: object) -> str:
        if isinstance(value, str) and value.isprintable() and 1 <= len(value.encode()) <= self.most_bytes:
            return value
        raise ValueError(f"must be {self.allowed}.")

    def text(self, value: str) -> str:
        return value


class Names:
    """Names in a list, or in one text with commas between them; none: an empty list."""

    placeholder = "NAMES"
    allowed = "names with commas between them, or none"

    def parse(self, value: object) -> tuple[str, ...]:
        if value == "none":
            return ()
        names = value.split(",") if isinstance(value, str) else value
        if not isinstance(names, list | tuple):
            raise ValueError(f"must be {self.allowed}.")
        stripped = [name.strip() if isinstance(name, str) else "" for name in names]
        if not all(name and name.isprintable() for name in stripped):
            raise ValueError(f"must be {self.allowed}.")
        return tuple(dict.fromkeys(stripped))

    def text(self, value: tuple[str, ...]) -> str:
        return ",".join(value) or "none"


class Folder:
    placeholder = "DIR"
    allowed = "a path"

    def parse(self, value: object) -> Path:
        return _path(value, self.allowed)

    def text(self, value: Path) -> str:
        return f"./{value}" if not value.is_absolute() else str(value)


class OptionalFile:
    placeholder = "FILE"
    allowed = "a path"

    def parse(self, value: object) -> Path | None:
        return None if value is None else _path(value, self.allowed)

    def text(self, value: Path | None) -> str:
        return "none" if value is None else str(value)


class Address:
    placeholder = "ADDRESS"
    allowed = "an IP address or a host name of this machine"

    def parse(self, value: object) -> str:
        if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9.:_%-]{1,253}", value):
            return value
        raise ValueError(f"must be {self.allowed}.")

    def text(self, value: str) -> str:
        return value


class Advertised:
    """An address that clients are told, with a port or without one."""

    placeholder = "ADDRESS"
    allowed = "a host name or an IP address that clients can reach, with :port or without, or none"

    def parse(self, value: object) -> str:
        if value in ("", "none"):
            return ""
        if isinstance(value, str) and re.fullmatch(
            r"(\[[A-Fa-f0-9.:]{2,45}\]|[A-Za-z0-9._-]{1,253})(:[0-9]{1,5})?", value
        ):
            port = value.rpartition("]")[2].rpartition(":")[2]
            if ":" not in value.rpartition("]")[2] or 1 <= int(port) <= 65535:
                return value
        raise ValueError(f"must be {self.allowed}.")

    def text(self, value: str) -> str:
        return value or "none"


def _path(value: object, allowed: str) -> Path:
    if isinstance(value, Path):
        return value
    if isinstance(value, str) and value and "\0" not in value:
        return Path(value).expanduser()
    raise ValueError(f"must be {allowed}.")


def _whole(value: object) -> int | None:
    """A whole number, or None. True is not one, though Python says so."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
        return int(value)
    return None


def _with_unit(value: object, units: dict[str, int]) -> int | None:
    number = _whole(value)
    if number is not None or not isinstance(value, str):
        return number
    match = re.fullmatch(r"([0-9]{1,18}) ?([A-Za-z]+)", value)
    if match is None or match[2] not in units:
        return None
    return int(match[1]) * units[match[2]]


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    import difflib  # only a mistake needs it

    found = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return found[0] if found else None
