"""The record: key, value, headers, timestamp. Neutral: no protocol's fields."""

Headers = tuple[tuple[bytes, bytes | None], ...]


class Record:
    """One message's content. Shared between the queues it was routed to, so never changed once made."""

    __slots__ = ("headers", "key", "timestamp_ms", "value")

    def __init__(self, key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int) -> None:
        self.key = key
        self.value = value
        self.headers = headers
        self.timestamp_ms = timestamp_ms

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (
            self.key == other.key
            and self.value == other.value
            and self.headers == other.headers
            and self.timestamp_ms == other.timestamp_ms
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Record({self.key!r}, {self.value!r}, {self.headers!r}, {self.timestamp_ms})"
