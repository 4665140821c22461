"""`interlog policies`: settings of queues, streams and exchanges by pattern, at a running broker."""

import argparse
import json
from collections.abc import Sequence
from typing import Any

from interlog.app.cli.client import Actions, Client, done, show
from interlog.app.cli.main import parser
from interlog.base.errors import InvalidError

_EPILOG = """\
Settings have RabbitMQ's names, and are given as one JSON object or as NAME=VALUE:
  interlog policies set short '^tmp\\.' message-ttl=60000 max-length=1000
  interlog policies set short '^tmp\\.' '{"message-ttl": 60000, "max-length": 1000}'
They are: message-ttl, expires, max-length, max-length-bytes, overflow, dead-letter-exchange, dead-letter-routing-key,
delivery-limit and consumer-timeout of queues; max-age, max-length-bytes and stream-max-segment-size-bytes of streams;
alternate-exchange of exchanges.
Of the policies whose pattern is found in a name, the one with the highest priority holds, and no other."""

_APPLY_TO = ("all", "queues", "classic_queues", "quorum_queues", "streams", "exchanges")


def run(arguments: Sequence[str]) -> int:
    made = parser("policies", "Settings of queues, streams and exchanges by pattern, of a running broker.", _EPILOG)
    actions = Actions(made)
    actions.add("list", help="show all policies")
    change = actions.add("set", help="make a policy, or put another in place of the one of its name")
    change.add_argument("name", help="of the policy")
    change.add_argument("pattern", help="a regular expression on names; it matches anywhere in a name")
    change.add_argument("settings", nargs="+", metavar="NAME=VALUE", help="or one JSON object")
    change.add_argument("--priority", type=int, default=0, metavar="N", help="(default: %(default)s)")
    change.add_argument("--apply-to", choices=_APPLY_TO, default="all", help="(default: %(default)s)")
    clear = actions.add("clear", help="remove a policy")
    clear.add_argument("name", help="of the policy")
    for one in (change, clear):
        one.add_argument("--vhost", default="/", help="(default: %(default)s)")
    given = made.parse_args(arguments)
    return _ACTIONS[given.action](Client(given), given)


def _list(client: Client, given: argparse.Namespace) -> int:
    policies = client.get("policies")
    columns = ("vhost", "name", "pattern", "apply-to", "priority")
    rows = [[*(str(one[column]) for column in columns), _in_words(one["definition"])] for one in policies]
    return show(given, policies, (*columns, "settings"), rows)


def _set(client: Client, given: argparse.Namespace) -> int:
    body = {
        "pattern": given.pattern,
        "definition": _settings(given.settings),
        "priority": given.priority,
        "apply-to": given.apply_to,
    }
    client.put("policies", given.vhost, given.name, body=body)
    return done(f"The policy {given.name} holds in the vhost {given.vhost}.")


def _clear(client: Client, given: argparse.Namespace) -> int:
    client.delete("policies", given.vhost, given.name)
    return done(f"The policy {given.name} is gone from the vhost {given.vhost}.")


def _in_words(definition: dict[str, Any]) -> str:
    return " ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in definition.items()
    )


def _settings(words: Sequence[str]) -> dict[str, Any]:
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            settings: dict[str, Any] = json.loads(words[0])
        except (ValueError, RecursionError) as error:
            raise InvalidError(f"The settings are not JSON: {error}.") from None
        return settings
    settings = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise InvalidError(f"{word!r} is not NAME=VALUE, such as max-length=1000.")
        try:
            settings[name] = json.loads(text)
        except (ValueError, RecursionError):
            settings[name] = text
    return settings


_ACTIONS = {"list": _list, "set": _set, "clear": _clear}
