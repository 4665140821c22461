"""`interlog verify`: read a data folder from end to end and say whether it is sound, and what to do if it is not.

Exit 0: sound. Exit 1: not sound, or it cannot be read. Nothing is changed unless --repair is given.
"""

from collections.abc import Sequence
from pathlib import Path

from interlog.app.cli.main import parser
from interlog.base.errors import FolderError


def run(arguments: Sequence[str]) -> int:
    made = parser(
        "verify",
        "Read a data folder from end to end and say whether it is sound. The broker must not be running on it.\n"
        "Nothing is changed unless --repair is given.",
        "Exit code 0: the folder is sound, start the broker. 1: it is damaged or cannot be read; the last\n"
        "lines say what to do. 2: the command was not given rightly.\n\n"
        "A torn end is no damage: the start cuts it off, and nothing that was acknowledged is in it. --repair\n"
        "does that now, makes broken indexes again, removes segments that nothing names, and puts the older\n"
        "checkpoint in the place of a damaged one. It never removes a whole envelope or batch. What it cannot\n"
        "mend must come from a copy of the folder: keep the damaged one until you have what you need from it.",
    )
    made.add_argument("folder", metavar="DIR", nargs="?", help="the data folder (default: ./data)")
    made.add_argument("--data", metavar="DIR", help="the same, as `interlog serve` takes it")
    made.add_argument("--repair", action="store_true", help="repair what can be repaired without losing anything whole")
    given = made.parse_args(arguments)
    if given.folder is not None and given.data is not None:
        made.error("name the data folder once: verify DIR, or verify --data DIR")

    folder = Path(given.folder or given.data or "data").expanduser().absolute()
    if not folder.is_dir():
        raise FolderError(f"There is no data folder {folder}. Name the right one: interlog verify DIR.")

    from interlog.journal.files import DiskFiles
    from interlog.journal.verify import verify

    report = verify(DiskFiles(), folder, given.repair)
    for line in report.lines:
        print(line)
    return 0 if report.sound else 1
