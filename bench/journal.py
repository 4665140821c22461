"""The storage spine against its targets: appends, acknowledgements, starts, memory, fixed costs.

python3 dev.py bench journal [--quick] [--only PART ...] [--folder FOLDER] [--json FILE]

Rates are the best of several rounds, each beside the disk's own in the same folder, for other work on the machine can
only make them worse. CPU is that of the whole process, with the threads that sync.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from _append import acknowledgements, appends, latency
from _depth import depth
from _recovery import recovery, serve
from _rig import Report, folders, machine, parser
from _ticks import ticks

PARTS = ("append", "ack", "latency", "ticks", "recovery", "depth", "start")


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    options.add_argument("--messages", type=int, help="how many messages the deep queue holds")
    given = options.parse_args()
    report = Report()
    with folders(given.folder) as folder:
        print(f"{machine()}; folder {given.folder or '.bench'}")
        for part in given.only:
            if part == "append":
                appends(folder, report, given.quick)
            elif part == "ack":
                acknowledgements(folder, report, given.quick)
            elif part == "latency":
                latency(folder, report, given.quick)
            elif part == "ticks":
                ticks(folder, report, given.quick)
            elif part == "recovery":
                recovery(folder, report, given.quick)
            elif part == "depth":
                depth(folder, report, given.quick, given.messages)
            else:
                serve(folder, report, given.quick)
    report.finish(given.json, {"quick": given.quick})
    return 0


if __name__ == "__main__":
    sys.exit(main())
