"""`interlog serve`: the broker in the foreground until it is told to stop.

SIGINT or SIGTERM once: no new connections, parked replies leave, the state is saved, exit 0. Twice: at once, exit 1;
what was acknowledged is safe either way. SIGHUP, where there is TLS: the
certificate is read again.
"""

import argparse
import asyncio
import gc
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Final

from interlog.app.allocator import keep_freed_memory
from interlog.app.cli.main import parser
from interlog.app.launcher import Launcher
from interlog.app.loops import loop_factory
from interlog.app.settings import ENVIRONMENT_PREFIX, FILE_NAME, Settings, load, table
from interlog.base.log import configure, get_log
from interlog.net.open_files import raise_limit

log = get_log("app")

# How long a thread may keep the interpreter from the event loop. Beside a busy thread an echo took 5.2 ms with
# Python's own 5 ms, and 0.6 ms with this; two busy threads lost nothing by it, but 40 % at 0.2 ms.
SWITCH_SECONDS: Final = 0.0005

# When Python looks for cycles: after so many more objects, and at older ones after so many looks. What the broker makes
# ends without it, so that looking rarely costs no memory, while a look at all objects of 10,000 connections or of
# 5,000 queues takes 50 ms and more, in which nobody is served.
COLLECT_AFTER: Final = (20_000, 5, 50)


def run(arguments: Sequence[str]) -> int:
    settings = read_settings(arguments)
    configure(settings.log_format, settings.log_level)
    raise_limit()
    sys.setswitchinterval(SWITCH_SECONDS)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_serve(settings))


def read_settings(arguments: Sequence[str]) -> Settings:
    """Flags over environment over file, checked. What is wrong with a flag's value is said by the settings."""
    given = vars(_parser().parse_args(arguments))
    config = given.pop("config") or os.environ.get(f"{ENVIRONMENT_PREFIX}CONFIG")
    flags = {name: text for name, text in given.items() if text is not None}
    return load(flags, config=Path(config) if config else None)


async def _serve(settings: Settings) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    launcher = Launcher(settings)
    launcher.on_failure = stop.set

    asked = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        # A plain handler, not the loop's: it must be heard while the core recovers or closes, too. It may run
        # between any two steps of the code below, so it only leaves word for the loop, which then sets `stop`.
        nonlocal asked
        if asked:
            _say_at_once("stopped at once, as asked; the next start recovers.")
            os._exit(1)
        asked = True
        loop.call_soon_threadsafe(begin_to_stop, number)

    def begin_to_stop(number: int) -> None:
        log.info("stopping", signal=signal.Signals(number).name)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    if settings.tls_certificate is not None:
        loop.add_signal_handler(signal.SIGHUP, launcher.reload_certificates)
    await launcher.start()
    keep_freed_memory()
    gc.freeze()  # what is there now stays
    gc.set_threshold(*COLLECT_AFTER)
    await stop.wait()
    await launcher.stop()
    if launcher.failure is not None:
        log.error("stopped by a failure", reason=launcher.failure)
        return 1
    log.info("stopped")
    return 0


def _say_at_once(sentence: str) -> None:
    try:
        os.write(2, f"interlog: {sentence}\n".encode())
    except OSError:
        pass  # nobody listens any more


def _parser() -> argparse.ArgumentParser:
    made = parser(
        "serve",
        "Run the broker in the foreground. Ctrl-C stops it cleanly.",
        f"Each setting can also stand in {FILE_NAME} (http_port = 15672) or in the environment\n"
        f"({ENVIRONMENT_PREFIX}HTTP_PORT=15672). A flag wins over the environment, the environment over the file.",
    )
    made.add_argument("--config", metavar="FILE", help=f"the settings file (default: {FILE_NAME}, if it is there)")
    for row in table():
        help = f"{row.help} Allowed: {row.kind.allowed}. (default: {row.default_text})"
        made.add_argument(row.flag, dest=row.name, metavar=row.kind.placeholder, help=help.replace("%", "%%"))
    return made
