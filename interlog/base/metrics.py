"""Numbers about the broker, as Prometheus reads them.

Counters are objects that hot code adds to directly (`counter.value += n`); everything else is a function that is
asked when somebody looks. What comes out is Prometheus' text format, version 0.0.4.
"""

from collections.abc import Callable, Iterable

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Number = int | float
Labels = tuple[tuple[str, str], ...]
Sample = tuple[Labels, Number]


class Counter:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class Metrics:
    """All that is measured, in the order it was registered."""

    def __init__(self) -> None:
        self._families: dict[str, tuple[str, str, Callable[[], Iterable[Sample]]]] = {}

    def counter(self, name: str, help: str, labels: Labels = ()) -> Counter:
        """A new counter; the same name again with other labels joins its family."""
        counter = Counter()
        if name in self._families:
            kind, text, others = self._families[name]
            self._families[name] = (kind, text, lambda: [*others(), (labels, counter.value)])
        else:
            self._families[name] = ("counter", help, lambda: [(labels, counter.value)])
        return counter

    def gauge(self, name: str, help: str, read: Callable[[], Number]) -> None:
        self._families[name] = ("gauge", help, lambda: [((), read())])

    def samples(self, name: str, help: str, read: Callable[[], Iterable[Sample]], kind: str = "gauge") -> None:
        """A family whose samples are made when asked."""
        self._families[name] = (kind, help, read)

    def render(self) -> str:
        lines: list[str] = []
        for name, (kind, text, read) in self._families.items():
            lines.append(f"# HELP {name} {_escape_help(text)}")
            lines.append(f"# TYPE {name} {kind}")
            lines.extend(f"{name}{_labels(labels)} {value}" for labels, value in read())
        return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{key}="{_escape_label(value)}"' for key, value in labels) + "}"


def _escape_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _escape_label(text: str) -> str:
    return _escape_help(text).replace('"', '\\"')
