"""CRC32C of bytes, by the package of that name: `crc32c.crc32c(data, begin_from=0)`.

Only the package's compiled part is loaded. Importing the package itself looks up its version in its metadata, and that
alone would be a tenth of the broker's start. Where the compiled part is not where it is expected, the package is
imported whole.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

__all__ = ["crc32c"]


def _load() -> "Callable[..., int]":
    package = find_spec("crc32c")
    folders = package.submodule_search_locations if package is not None else None
    compiled = PathFinder.find_spec("crc32c._crc32c", folders) if folders else None
    if compiled is None or compiled.loader is None:
        import crc32c as whole

        return whole.crc32c
    module = module_from_spec(compiled)
    compiled.loader.exec_module(module)
    return module.crc32c  # type: ignore[no-any-return]


crc32c = _load()
