"""`interlog verify`: read a data folder from end to end and say whether it is sound.

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
        "Exit code 0: sound; 1: not sound.",
    )
    made.add_argument("--data", metavar="DIR", default="data", help="the data folder (default: ./data)")
    made.add_argument("--repair", action="store_true", help="repair what can be repaired without losing anything sound")
    given = made.parse_args(arguments)

    folder = Path(given.data).expanduser().absolute()
    if not folder.is_dir():
        raise FolderError(f"There is no data folder {folder}. Give the right one with --data.")

    from interlog.journal.files import DiskFiles
    from interlog.journal.verify import verify

    report = verify(DiskFiles(), folder, given.repair)
    for line in report.lines:
        print(line)
    return 0 if report.sound else 1
