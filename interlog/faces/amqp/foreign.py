"""Records that came by another protocol, as AMQP messages: properties made of what they say.

The key is the routing key, headers are headers, and the time is the timestamp. What AMQP has no place for stands in
headers more: the time to the millisecond, a key that is no routing key, and that there is no value at all.
"""

from typing import Any, Final

from interlog.faces.amqp.properties import PERSISTENT, Properties
from interlog.faces.amqp.values import Binary, Int64
from interlog.faces.amqp.wire import MAX_SHORT
from interlog.journal.record import Record

INTERNAL: Final = b"interlog."  # headers of such names are the broker's
KEY: Final = "x-record-key"  # the key as it was written, where the routing key is not just that
TOMBSTONE: Final = "x-record-tombstone"
TIME_MS: Final = "timestamp_in_ms"
LEFT_OUT: Final = "x-record-headers-left-out"
_ENTRY_BYTES: Final = 8  # of a header, beside its name and value
_ROOM_BYTES: Final = 512  # in a header frame, for all else that it holds


def properties_of(record: Record, frame_bytes: int) -> bytes:
    """For a header frame of so many bytes. What has no room in it is left out, and counted."""
    time_ms = max(record.timestamp_ms, 0)
    made = Properties(delivery_mode=PERSISTENT, timestamp=time_ms // 1_000)
    more: dict[str, Any] = {TIME_MS: Int64(time_ms)}
    if record.value is None:
        more[TOMBSTONE] = True
    table: dict[str, Any] = {}
    room = frame_bytes - _ROOM_BYTES
    left_out = 0
    if record.key is not None and (not record.key or record.key != routing_key(record)):
        if len(record.key) <= room:
            more[KEY] = Binary(record.key)
            room -= len(record.key)
        else:
            left_out += 1
    for name, value in record.headers:
        if name.startswith(INTERNAL):
            continue
        text = _short(name)
        room -= len(text) * 3 + len(value or b"") + _ENTRY_BYTES
        if room < 0:
            left_out += 1
            continue
        if text not in table:
            table[text] = value
        elif isinstance(table[text], list):
            table[text].append(value)
        else:
            table[text] = [table[text], value]
    if left_out:
        more[LEFT_OUT] = left_out
    made.headers = more | table
    return made.encode()


def routing_key(record: Record) -> bytes:
    """The key, if it is a short text; as much of it as can be shown if not."""
    key = record.key or b""
    if len(key) <= MAX_SHORT and key.isascii():
        return key
    return _short(key).encode()


def _short(raw: bytes) -> str:
    text = raw[:MAX_SHORT].decode("utf-8", "replace")
    return text.encode()[:MAX_SHORT].decode("utf-8", "ignore")
