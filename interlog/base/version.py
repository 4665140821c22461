"""The version, in one place. Bytes on disk carry their own format numbers."""

from typing import Final

VERSION: Final = "0.1.0"
