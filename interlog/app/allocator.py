"""What the system's allocator does with memory that is free again.

By default it gives large pieces back to the system at once, and the next one of that size is made of new pages, which
the kernel must find and clear. A broker under load needs such pieces all the time: reads of large batches took a
third more CPU than with these settings.
"""

from typing import Final

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as glibc numbers them
_KEPT_BYTES: Final = 64 << 20  # free memory at the end of the heap that is not given back
_LARGE_BYTES: Final = 4 << 20  # pieces from here on come from the system one by one


def keep_freed_memory() -> None:
    """For a process of the broker's own. Where there is no glibc nothing changes."""
    import ctypes  # here, because the start does not wait for it

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
