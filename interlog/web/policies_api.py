"""Policies over HTTP, with RabbitMQ's paths, bodies and names of settings.

Comes in: calls of those who make policies. Goes out: policies, and changes that last before they are answered.
`max-length-bytes` is one name for what is two settings here: a limit of queues and the retention of streams.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from interlog.base.errors import InvalidError, NotFoundError
from interlog.core.broker import Core
from interlog.core.policies import OPERATOR_KEYS, Policy
from interlog.core.queue_settings import DECLARED
from interlog.web.guard import Call, Guard, Needs, lasting
from interlog.web.http import Response, json_response
from interlog.web.router import Routes

CREATED, DONE = 201, 204

# RabbitMQ's name → the settings it stands for here.
_SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "message-ttl": ("message_ttl_ms",),
    "expires": ("expires_ms",),
    "max-length": ("max_length",),
    "max-length-bytes": ("max_bytes", "retention_bytes"),
    "overflow": ("overflow",),
    "dead-letter-exchange": ("dead_letter_exchange",),
    "dead-letter-routing-key": ("dead_letter_key",),
    "delivery-limit": ("delivery_limit",),
    "consumer-timeout": ("consumer_timeout_ms",),
    "max-age": ("retention_ms",),
    "stream-max-segment-size-bytes": ("segment_bytes",),
    "alternate-exchange": ("alternate",),
}
_NAMES: Final = {setting: name for name, settings in _SETTINGS.items() for setting in settings}

# What RabbitMQ's policies may say and one node has no use for: kept, shown, and without effect.
_WITHOUT_EFFECT: Final = frozenset(
    (
        "queue-mode",
        "queue-version",
        "queue-leader-locator",
        "queue-master-locator",
        "dead-letter-strategy",
        "max-in-memory-length",
        "max-in-memory-bytes",
        "initial-cluster-size",
        "target-group-size",
        "stream-filter-size-bytes",
        *("ha-mode", "ha-params", "ha-sync-mode", "ha-sync-batch-size"),
        *("ha-promote-on-shutdown", "ha-promote-on-failure"),
    )
)

_AGE: Final = re.compile(r"([0-9]{1,12})([YMDhms])")
_AGE_MS: Final = {"Y": 31_536_000_000, "M": 2_592_000_000, "D": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}


class PoliciesApi:
    def __init__(self, core: Core, guard: Guard) -> None:
        self._core = core
        self._guard = guard

    def routes(self) -> Routes:
        return self._of_kind("policies", False) | self._of_kind("operator-policies", True)

    def _of_kind(self, path: str, operator: bool) -> dict[str, Any]:
        changes = Needs.AN_ADMINISTRATOR if operator else Needs.A_POLICYMAKER

        def handler(needs: Needs, serve: Callable[[Call, bool], Response]) -> Any:
            return self._guard.handler(needs, lambda call: serve(call, operator))

        return {
            f"/api/{path}": {"GET": handler(Needs.A_VIEWER, self._all)},
            f"/api/{path}/{{vhost}}": {"GET": handler(Needs.A_VIEWER, self._all)},
            f"/api/{path}/{{vhost}}/{{name}}": {
                "GET": handler(Needs.A_VIEWER, self._one),
                "PUT": handler(changes, self._put),
                "DELETE": handler(changes, self._delete),
            },
        }

    def _all(self, call: Call, operator: bool) -> Response:
        policies = self._core.policies
        spaces = self._guard.vhosts(call, self._core.catalog)
        return json_response([_shown(one) for space in spaces for one in policies.all(space, operator=operator)])

    def _find(self, call: Call, operator: bool) -> Policy | None:
        namespace, name = call.parts
        self._guard.check_vhost(call, namespace)
        found = self._core.policies.all(self._core.catalog.namespace(namespace).name, operator=operator)
        return next((one for one in found if one.name == name), None)

    def _one(self, call: Call, operator: bool) -> Response:
        found = self._find(call, operator)
        if found is None:
            raise NotFoundError(f"there is no policy {call.parts[1]} in namespace {call.parts[0]}")
        return json_response(_shown(found))

    def _put(self, call: Call, operator: bool) -> Response:
        namespace, name = call.parts
        before = self._find(call, operator)
        body = call.body()
        priority = body.get("priority", 0)
        definition = body.get("definition")
        if not isinstance(priority, int) or isinstance(priority, bool):
            raise InvalidError("the priority is a whole number")
        if not isinstance(definition, dict):
            raise InvalidError("the body needs a definition, which is a JSON object")
        apply_to = body.get("apply-to", "all")
        if not isinstance(apply_to, str):
            raise InvalidError("apply-to is text")
        settings = _settings(definition, operator)
        try:
            self._core.policies.put(
                namespace,
                name,
                call.text("pattern"),
                settings,
                priority=priority,
                apply_to=apply_to,
                operator=operator,
            )
        except InvalidError as error:
            raise InvalidError(re.sub(r"\w+", lambda word: _NAMES.get(word[0], word[0]), str(error))) from None
        return lasting(Response(CREATED if before is None else DONE, b""), self._core.ticket)

    def _delete(self, call: Call, operator: bool) -> Response:
        self._find(call, operator)
        namespace, name = call.parts
        self._core.policies.remove(namespace, name, operator=operator)
        return lasting(Response(DONE, b""), self._core.ticket)


def _shown(policy: Policy) -> dict[str, Any]:
    return {
        "vhost": policy.namespace,
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "priority": policy.priority,
        "definition": _definition(policy.definition),
    }


def _definition(settings: Mapping[str, Any]) -> dict[str, Any]:
    shown = dict(_as_rabbitmq(key, value) for key, value in settings.items() if key != DECLARED)
    shown.update(settings.get(DECLARED, {}))
    return shown


def age_text(ms: int) -> str:
    """As max-age has it."""
    unit = next(one for one, length in _AGE_MS.items() if ms % length == 0 or one == "s")
    return f"{ms // _AGE_MS[unit]}{unit}"


def _as_rabbitmq(setting: str, value: Any) -> tuple[str, Any]:
    if setting == "retention_ms" and isinstance(value, int):
        value = age_text(value)
    return _NAMES.get(setting, setting), value


def _settings(definition: Mapping[str, Any], operator: bool) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, value in definition.items():
        if name in _WITHOUT_EFFECT:
            settings.setdefault(DECLARED, {})[name] = value
            continue
        if name not in _SETTINGS:
            raise InvalidError(f"{name} is nothing that a policy can set; there are {', '.join(_SETTINGS)}")
        for setting in _SETTINGS[name]:
            if not operator or setting in OPERATOR_KEYS:
                settings[setting] = _age_ms(value) if setting == "retention_ms" else value
        if not set(_SETTINGS[name]) & settings.keys():
            raise InvalidError(f"{name} is nothing that an operator's policy can set")
    return settings


def _age_ms(value: Any) -> int:
    match = _AGE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise InvalidError(f"max-age is a number and one of Y, M, D, h, m and s, such as 7D, not {value!r}")
    return int(match[1]) * _AGE_MS[match[2]]
