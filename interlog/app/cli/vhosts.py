"""`interlog vhosts`: virtual hosts (namespaces) of a running broker."""

import argparse
from collections.abc import Sequence

from interlog.app.cli.client import Actions, Client, RefusedByBrokerError, done, show
from interlog.app.cli.main import parser

_EPILOG = """\
  interlog vhosts add shop
  interlog permissions set ann --vhost shop     lets ann in: a new vhost is open to nobody but who made it
Clients name it behind the address: amqp://ann:secret@host:5672/shop. The vhost / is always there, and written %2F."""


def run(arguments: Sequence[str]) -> int:
    made = parser(
        "vhosts",
        "Virtual hosts of a running broker: queues, exchanges and topics of one vhost know nothing of another's.",
        _EPILOG,
    )
    actions = Actions(made)
    actions.add("list", help="show all vhosts")
    add = actions.add("add", help="make a vhost; you get all permissions in it")
    add.add_argument("name", help="of the vhost")
    add.add_argument("--description", default="", metavar="TEXT", help="what it is for")
    delete = actions.add("delete", help="remove a vhost and everything in it: queues, messages, permissions")
    delete.add_argument("name", help="of the vhost")
    delete.add_argument("--yes", action="store_true", help="it is meant; nothing brings back what is removed")
    given = made.parse_args(arguments)
    return _ACTIONS[given.action](Client(given), given)


def _list(client: Client, given: argparse.Namespace) -> int:
    vhosts = client.get("vhosts")
    rows = [(vhost["name"], vhost["description"] or "-") for vhost in vhosts]
    return show(given, vhosts, ("vhost", "description"), rows)


def _add(client: Client, given: argparse.Namespace) -> int:
    body = {"description": given.description} if given.description else {}
    client.put("vhosts", given.name, body=body)
    return done(f"There is a vhost {given.name}. `interlog permissions set USER --vhost {given.name}` lets others in.")


def _delete(client: Client, given: argparse.Namespace) -> int:
    client.get("vhosts", given.name)
    if not given.yes:
        raise RefusedByBrokerError(
            f"This would remove the vhost {given.name} with all queues and messages in it. Add --yes if it is meant."
        )
    client.delete("vhosts", given.name)
    return done(f"The vhost {given.name} is gone.")


_ACTIONS = {"list": _list, "add": _add, "delete": _delete}
