"""Holds the same conversations with Interlog and with a real RabbitMQ, and shows where the answers differ.

    python -m tests.peers.differences                    all of them, with brokers of their own
    python -m tests.peers.differences -k dead_letters    those whose name has this in it
    python -m tests.peers.differences --show -k tx_      the whole of what was said, too

A conversation that differs is held again, slower: what differs then still is shown, and is a difference that somebody
must judge. Those that are known to differ say why where they stand.
"""

import argparse
import difflib
import shutil
import sys
import tempfile
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from tests.peers.differences import (  # noqa: F401  (they register)
    access,
    connections,
    consuming,
    dead_letters,
    exchanges,
    limits,
    publishing,
    queues,
    streams,
)
from tests.peers.differences.register import CONVERSATIONS, Conversation
from tests.peers.differences.talk import Talk
from tests.peers.targets import Interlog, NoTarget, Rabbit, Running, Target

PACES = (1.0, 2.5, 5.0)
_numbers = count(1)
_lock = threading.Lock()


def hold(one: Conversation, target: Target, pace: float) -> list[str]:
    """The transcript."""
    with _lock:
        vhost = f"d{next(_numbers)}x"
    talk = Talk(target.url, target.management_url, vhost, pace)
    try:
        one.hold(talk)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        talk.note(f"broke off: {type(error).__name__} {error} ({Path(where.filename).name}:{where.lineno})")
    finally:
        talk.close()
    return talk.transcript


def compare(one: Conversation, rabbit: Target, ours: Target) -> tuple[list[str], list[str]]:
    theirs: list[str] = []
    mine: list[str] = []
    for pace in PACES:
        with ThreadPoolExecutor(2) as pair:
            both = [pair.submit(hold, one, target, pace) for target in (rabbit, ours)]
            theirs, mine = both[0].result(), both[1].result()
        if theirs == mine or one.differs:
            break
    return theirs, mine


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("-k", dest="words", action="append", default=[], help="only those with this in their name")
    options.add_argument("--show", action="store_true", help="the whole transcripts, too")
    options.add_argument("--jobs", type=int, default=4)
    given = options.parse_args()
    wanted = [one for one in CONVERSATIONS if not given.words or any(word in one.name for word in given.words)]
    folder = Path(tempfile.mkdtemp(prefix="differences-"))
    unknown = known = 0
    try:
        with ExitStack() as stack:
            rabbit = stack.enter_context(Running(Rabbit(folder / "rabbitmq", management=True)))
            ours = stack.enter_context(Running(Interlog(folder / "interlog")))
            with ThreadPoolExecutor(given.jobs) as pool:
                for one, (theirs, mine) in zip(
                    wanted, pool.map(lambda one: compare(one, rabbit, ours), wanted), strict=True
                ):
                    if given.show:
                        print(f"=== {one.name}\n" + "\n".join(theirs))
                    if theirs == mine:
                        note = f" (said to differ: {one.differs})" if one.differs else ""
                        print(f"same    {one.name}{note}", flush=True)
                        continue
                    if one.differs:
                        known += 1
                        print(f"known   {one.name}: {one.differs}", flush=True)
                        continue
                    unknown += 1
                    print(f"DIFFERS {one.name}")
                    lines = difflib.unified_diff(theirs, mine, "rabbitmq", "interlog", n=2, lineterm="")
                    print("\n".join(f"    {line}" for line in lines), flush=True)
    except NoTarget as error:
        print(error)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{len(wanted)} conversations: {unknown} differ, {known} are known to")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
