"""The command line's front: finds the command, runs it, turns what went wrong into a sentence and an exit code.

0: all is well. 1: it did not work, and the last line on standard error says why. 2: it was not asked for rightly.
Each command is a module of its own, imported only when it is meant.
"""

import argparse
import gc
import importlib
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Final, NoReturn

from interlog.base.errors import InterlogError, SettingError
from interlog.base.version import VERSION

COMMANDS: Final = {
    "serve": "run the broker in the foreground",
    "status": "show what a running broker says of itself",
    "users": "who may come in: list, add, password, tags, delete",
    "vhosts": "virtual hosts: list, add, delete",
    "permissions": "what users may do: list, set, clear",
    "policies": "settings of queues, streams and exchanges by pattern: list, set, clear",
    "verify": "check a data folder, and repair what can be repaired",
}

# Of the operating system, by the journal.
NEEDED_CALLS: Final = ("posix_fallocate", "fdatasync", "copy_file_range", "posix_fadvise")

# A process that has just begun makes modules and classes, and they stay: to look for cycles among them delays a start.
_COLLECT_AFTER: Final = 100_000

_CHOICE: Final = re.compile("argument ACTION: invalid choice: ('.*?')")

_HELP: Final = """\
usage: interlog COMMAND [options]

A message broker in one process with one data folder.

commands:
{commands}

`interlog COMMAND --help` explains a command; `interlog --version` tells the version.
Start here: interlog serve --data ./data
Then, in another terminal: interlog status; interlog users add NAME; interlog permissions set NAME
"""


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] in ("--version", "-V"):
        print(f"interlog {VERSION}")
        return 0
    if not words or words[0] in ("--help", "-h", "help"):
        (sys.stdout if words else sys.stderr).write(_help())
        return 0 if words else 2
    command = words[0]
    if command not in COMMANDS:
        hint = near(command, COMMANDS)
        say(f"{command!r} is not a command.{hint} There is: {', '.join(COMMANDS)}. `interlog --help` explains them.")
        return 2
    if not all(hasattr(os, call) for call in NEEDED_CALLS):
        say(f"Interlog runs on Linux only so far: this system has not all of {', '.join(NEEDED_CALLS)}.")
        return 1
    module = importlib.import_module(f"interlog.app.cli.{command}")
    try:
        code: int = module.run(words[1:])
    except SettingError as error:
        say(str(error))
        return 2
    except InterlogError as error:
        say(str(error))
        return 1
    except BrokenPipeError:
        return 1  # whoever read the output has gone
    except KeyboardInterrupt:
        return 130
    return code


def entry() -> NoReturn:
    gc.set_threshold(_COLLECT_AFTER)
    sys.exit(main())


def say(sentence: str) -> None:
    print(f"interlog: {sentence}", file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """What is wrong with a line is one sentence, and not the list of all flags."""

    def error(self, message: str) -> NoReturn:
        wrong, _, flag = message.rpartition("unrecognized arguments: ")
        known = [one for action in self._actions for one in action.option_strings]
        hint = near(flag.partition(" ")[0], known) if not wrong else ""
        choice = _CHOICE.match(message)
        if choice is not None or message.endswith("required: ACTION"):
            there = [name for one in self._actions if isinstance(one.choices, dict) for name in one.choices]
            said = f"{choice[1]} is nothing that it does" if choice is not None else "say what it is to do"
            hint = near(choice[1].strip("'"), there) if choice is not None else ""
            message = f"`{self.prog}`: {said}"
            hint += f" There is: {', '.join(there)}."
        say(f"{message}.{hint} `{self.prog} --help` explains what there is.")
        self.exit(2)


def near(word: str, known: Iterable[str]) -> str:
    """The question whether another word was meant, if one is like it."""
    import difflib  # only a mistake needs it

    found = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean {found[0]}?" if found else ""


def parser(command: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    """A command's parser: whole flag names only, so that a new flag never changes what an old line means."""
    return _Parser(
        prog=f"interlog {command}",
        description=description,
        epilog=epilog,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _help() -> str:
    width = max(map(len, COMMANDS))
    return _HELP.format(commands="\n".join(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()))
