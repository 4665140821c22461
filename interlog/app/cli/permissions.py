"""`interlog permissions`: what users of a running broker may do."""

import argparse
from collections.abc import Sequence

from interlog.app.cli.client import Actions, Client, done, show
from interlog.app.cli.main import parser

_EPILOG = """\
The three patterns are regular expressions on the names of queues, exchanges and topics. They match anywhere in the
name: "^orders\\." is what begins with orders., "" is nothing, ".*" is everything.
  configure  declare and delete
  write      publish to an exchange; bind a queue to it
  read       consume, get and purge; bind from an exchange
What is left out is ".*":
  interlog permissions set ann                  everything in the vhost /
  interlog permissions set ann '^ann\\.' --vhost shop
  interlog permissions set bob '' '' --vhost shop     may read, and nothing else"""


def run(arguments: Sequence[str]) -> int:
    made = parser("permissions", "What users of a running broker may do.", _EPILOG)
    actions = Actions(made)
    actions.add("list", help="show all permissions")
    change = actions.add("set", help="give a user permissions in a vhost, in place of those it has there")
    change.add_argument("name", metavar="user", help="who gets them")
    for what in ("configure", "write", "read"):
        change.add_argument(what, nargs="?", default=".*", metavar=what, help="a pattern (default: .*, everything)")
    clear = actions.add("clear", help="take a user's permissions in a vhost away; it can no longer enter")
    clear.add_argument("name", metavar="user", help="who loses them")
    for one in (change, clear):
        one.add_argument("--vhost", default="/", help="(default: %(default)s)")
    given = made.parse_args(arguments)
    return _ACTIONS[given.action](Client(given), given)


def _list(client: Client, given: argparse.Namespace) -> int:
    permissions = client.get("permissions")
    columns = ("vhost", "user", "configure", "write", "read")
    rows = [[one[column] or "(nothing)" for column in columns] for one in permissions]
    return show(given, permissions, columns, rows)


def _set(client: Client, given: argparse.Namespace) -> int:
    body = {what: getattr(given, what) for what in ("configure", "write", "read")}
    client.put("permissions", given.vhost, given.name, body=body)
    return done(f"The user {given.name} has permissions in the vhost {given.vhost}.")


def _clear(client: Client, given: argparse.Namespace) -> int:
    client.delete("permissions", given.vhost, given.name)
    return done(f"The user {given.name} has no permissions in the vhost {given.vhost} any more.")


_ACTIONS = {"list": _list, "set": _set, "clear": _clear}
