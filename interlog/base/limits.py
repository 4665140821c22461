"""Limits that are not settings: what no sensible client comes near, and a hostile one must not get past.

Bytes are counted as the broker holds them. Whoever hits a limit is told so in the protocol's own words.
"""

from typing import Final

# Connections. Past the limit a new one is closed at once; the accept queue is the kernel's.
MAX_CONNECTIONS: Final = 16_384
FILES_BESIDE_CONNECTIONS: Final = 512  # the journal's, the checkpoint's, segments that are read
ACCEPT_BACKLOG: Final = 1024

# Output of one connection. Past the first mark a face stops pushing what was not asked for; past the second the
# driver stops reading, so that a client that only asks and never listens cannot fill the memory.
OUTPUT_PAUSE_BYTES: Final = 256 * 1024
OUTPUT_RESUME_BYTES: Final = 64 * 1024
OUTPUT_HOLD_BYTES: Final = 8 * 1024 * 1024

# HTTP.
MAX_HTTP_CONNECTIONS: Final = 256
MAX_HTTP_HEAD_BYTES: Final = 16 * 1024
MAX_HTTP_BODY_BYTES: Final = 64 * 1024
HTTP_REQUEST_SECONDS: Final = 10.0  # from the first byte of a request to its last
HTTP_IDLE_SECONDS: Final = 75.0  # between requests

# Stopping. Parked replies are waited for this long, then the connections are closed all the same.
DRAIN_SECONDS: Final = 5.0
