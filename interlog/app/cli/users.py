"""`interlog users`: who may come in, at a running broker."""

import argparse
from collections.abc import Sequence

from interlog.app.cli.client import Actions, Client, done, read_password, show
from interlog.app.cli.main import parser

_EPILOG = """\
  interlog users add ann                        asks for the password, or reads it from standard input
  interlog users add eve secret --tags monitoring
A new user may do nothing until it has permissions: interlog permissions set NAME.
Tags say what a user may do over HTTP. administrator: everything; policymaker: policies; monitoring: look at everything;
management: look at the vhosts it may enter. No tag is needed to publish and to consume."""

_ASKED = "what it is to be; asked for if it is left out"


def run(arguments: Sequence[str]) -> int:
    made = parser("users", "Users of a running broker.", _EPILOG)
    actions = Actions(made)
    actions.add("list", help="show all users and their tags")
    add = actions.add("add", help="make a user")
    add.add_argument("name", help="of the user")
    add.add_argument("new_password", metavar="PASSWORD", nargs="?", help=_ASKED)
    add.add_argument("--tags", default="", help="words with commas between them, such as administrator")
    add.add_argument("--no-password", action="store_true", help="comes in with a TLS certificate of this name only")
    password = actions.add("password", help="give a user another password")
    password.add_argument("name", help="of the user")
    password.add_argument("new_password", metavar="PASSWORD", nargs="?", help=_ASKED)
    tags = actions.add("tags", help="give a user other tags")
    tags.add_argument("name", help="of the user")
    tags.add_argument("tags", nargs="*", metavar="TAG", help="in place of those it has; none: it has none")
    delete = actions.add("delete", help="remove a user and its permissions")
    delete.add_argument("name", help="of the user")
    given = made.parse_args(arguments)
    return _ACTIONS[given.action](Client(given), given)


def _list(client: Client, given: argparse.Namespace) -> int:
    users = client.get("users")
    rows = [
        (user["name"], ", ".join(user["tags"]) or "-", "yes" if user["has_password"] else "no (certificate)")
        for user in users
    ]
    return show(given, users, ("user", "tags", "password"), rows)


def _add(client: Client, given: argparse.Namespace) -> int:
    if any(user["name"] == given.name for user in client.get("users")):
        from interlog.base.errors import ExistsError

        raise ExistsError(f"There is a user {given.name} already. `interlog users password` gives it another password.")
    body = {"tags": given.tags}
    if not given.no_password:
        body["password"] = given.new_password or read_password(given.name)
    client.put("users", given.name, body=body)
    return done(f"The user {given.name} is made. `interlog permissions set {given.name}` lets it do something.")


def _password(client: Client, given: argparse.Namespace) -> int:
    tags = client.get("users", given.name)["tags"]
    password = given.new_password or read_password(given.name)
    client.put("users", given.name, body={"tags": tags, "password": password})
    return done(f"The user {given.name} has another password. Connections that are open stay.")


def _tags(client: Client, given: argparse.Namespace) -> int:
    client.get("users", given.name)
    client.put("users", given.name, body={"tags": given.tags, "keep_password": True})
    return done(f"The user {given.name} has {'the tags ' + ', '.join(given.tags) if given.tags else 'no tags'}.")


def _delete(client: Client, given: argparse.Namespace) -> int:
    client.delete("users", given.name)
    return done(f"The user {given.name} is gone.")


_ACTIONS = {"list": _list, "add": _add, "password": _password, "tags": _tags, "delete": _delete}
