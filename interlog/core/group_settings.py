"""What one group is set to, in place of what all groups are set to.

Comes in: names and numbers. Goes out: checked settings, and the same from the catalog. A group need not be there to
have some, and they stay when it goes.
"""

from collections.abc import Mapping
from typing import Any, Final

from interlog.base.errors import InvalidError
from interlog.core.catalog import Catalog

KIND: Final = "group_settings"  # of the catalog's objects, one a group that is set to something

LATEST: Final = -1  # where a share group begins to read a partition: after all that is there,
EARLIEST: Final = -2  # or before it

_MOST_MS: Final = 3_600_000
_NUMBERS: Final = {
    "session_ms": (1, _MOST_MS),
    "heartbeat_ms": (1, _MOST_MS),
    "share_session_ms": (1, _MOST_MS),
    "share_heartbeat_ms": (1, _MOST_MS),
    "share_lock_ms": (1, _MOST_MS),
    "share_deliveries": (1, 100),
    "share_locks": (1, 1_000_000),
    "share_committed": (0, 1),  # 1: what transactions that were aborted wrote is not delivered
    "share_start": (EARLIEST, (1 << 53) - 1),  # LATEST, EARLIEST, or how old the first record may be
}


def check_settings(given: Mapping[str, Any]) -> dict[str, int]:
    for name, value in given.items():
        if name not in _NUMBERS:
            raise InvalidError(f"{name!r} is not a setting of a group; there are {', '.join(_NUMBERS)}")
        least, most = _NUMBERS[name]
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise InvalidError(f"group setting {name} is a whole number from {least} to {most}, not {value!r}")
    return dict(given)


def own_settings(catalog: Catalog, namespace: str, group: str) -> Mapping[str, Any]:
    return catalog.value(KIND, namespace, group)


def keep_settings(catalog: Catalog, namespace: str, group: str, given: Mapping[str, Any]) -> None:
    """Put these in place of all that the group has of its own."""
    catalog.keep(KIND, namespace, group, check_settings(given))
