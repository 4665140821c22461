"""The broker inside another program: the same broker, on ports that the system chooses.

    async with interlog.Broker() as broker:
        print(broker.addresses["http"])

Without a data folder it makes a temporary one and removes it afterwards; what is kept there need not outlast the
process, so its durability is "os" unless told otherwise, and its journal files are small: a temporary folder is often
in memory. Settings are those of `interlog serve`, by the same names;
no settings file and no environment is read. It runs on the event loop that is running. Several brokers in one
process do not know of each other.
"""

import shutil
import tempfile
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from interlog.app.kinds import Port
from interlog.app.launcher import Launcher
from interlog.app.settings import Settings, from_arguments, table
from interlog.base.limits import DRAIN_SECONDS
from interlog.core.broker import Core

TEMPORARY_JOURNAL_FILE_BYTES: Final = 16 << 20


class Broker:
    """A broker for the time of a `with` block, or between `start` and `stop`."""

    def __init__(self, data: str | PathLike[str] | None = None, **settings: object) -> None:
        self._temporary = data is None
        self._arguments: dict[str, Any] = {
            row.name: 0 for row in table() if isinstance(row.kind, Port) and row.default is not None
        }
        if data is None:
            self._arguments["durability"] = "os"
            self._arguments["journal_file_bytes"] = TEMPORARY_JOURNAL_FILE_BYTES
        else:
            self._arguments["data"] = Path(data)
        self._arguments.update(settings)
        self._settings = from_arguments(self._arguments)  # a wrong setting is said here, not later
        self._folder: Path | None = None
        self._launcher: Launcher | None = None

    @property
    def settings(self) -> Settings:
        return self._running.settings if self._launcher is not None else self._settings

    @property
    def addresses(self) -> dict[str, str]:
        """The real address of each protocol that is served, such as {"http": "127.0.0.1:40123"}."""
        return self._running.addresses

    async def open_kafka(self, vhost: str) -> str:
        """One more port, whose Kafka clients see this vhost; its address."""
        return await self._running.open_kafka(vhost)

    def close_kafka(self, vhost: str) -> None:
        self._running.close_kafka(vhost)

    @property
    def core(self) -> Core:
        return self._running.core

    async def start(self) -> "Broker":
        if self._launcher is not None:
            raise RuntimeError("this broker has been started already")
        if self._temporary:
            self._folder = Path(tempfile.mkdtemp(prefix="interlog-"))
            self._arguments["data"] = self._folder
        launcher = Launcher(from_arguments(self._arguments))
        try:
            await launcher.start()
        except BaseException:
            self._remove_folder()
            raise
        self._launcher = launcher
        return self

    async def stop(self, drain_seconds: float = DRAIN_SECONDS) -> None:
        """Safe to call again. Clients that do not agree to their goodbye within that time are cut off."""
        launcher, self._launcher = self._launcher, None
        try:
            if launcher is not None:
                await launcher.stop(drain_seconds)
        finally:
            self._remove_folder()
        if launcher is not None and launcher.failure is not None:
            raise launcher.failure

    async def __aenter__(self) -> "Broker":
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def _running(self) -> Launcher:
        if self._launcher is None:
            raise RuntimeError("this broker is not running: use `async with`, or start it first")
        return self._launcher

    def _remove_folder(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
