"""Users and permissions over HTTP, with RabbitMQ's paths and bodies.

Comes in: calls of administrators. Goes out: users, permissions, and changes of them that last before they are
answered. Differences to RabbitMQ: no password hash is shown or taken, for what is kept here is SCRAM's; and a user's
tags can be changed alone, with "keep_password": true.
"""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from interlog.base.errors import InvalidError, NotFoundError
from interlog.core.access import Permission, TopicPermission, User
from interlog.core.broker import Core
from interlog.web.guard import Call, Guard, Needs, Serve, lasting
from interlog.web.http import Response, json_response
from interlog.web.router import Routes

CREATED, DONE = 201, 204


class UsersApi:
    def __init__(self, core: Core, guard: Guard) -> None:
        self._core = core
        self._access = core.access
        self._guard = guard

    def routes(self) -> Routes:
        def administrators(serve: Serve) -> Any:
            return self._guard.handler(Needs.AN_ADMINISTRATOR, serve)

        permissions = {
            "GET": administrators(self._permission),
            "PUT": administrators(self._set_permissions),
            "DELETE": administrators(self._clear_permissions),
        }
        topic_permissions = {
            "GET": administrators(self._topic_permissions_of),
            "PUT": administrators(self._set_topic_permissions),
            "DELETE": administrators(self._clear_topic_permissions),
        }
        return {
            "/api/whoami": {"GET": self._guard.handler(Needs.A_USER, self._whoami)},
            "/api/users": {"GET": administrators(self._users)},
            "/api/users/{name}": {
                "GET": administrators(self._user),
                "PUT": administrators(self._put_user),
                "DELETE": administrators(self._delete_user),
            },
            "/api/users/{name}/permissions": {"GET": administrators(self._permissions_of_user)},
            "/api/users/{name}/topic-permissions": {"GET": administrators(self._topic_permissions_of_user)},
            "/api/vhosts/{name}/permissions": {"GET": administrators(self._permissions_in)},
            "/api/vhosts/{name}/topic-permissions": {"GET": administrators(self._topic_permissions_in)},
            "/api/permissions": {"GET": administrators(lambda call: _list(self._access.permissions()))},
            "/api/permissions/{vhost}/{user}": permissions,
            "/api/topic-permissions": {"GET": administrators(lambda call: _list(self._access.topic_permissions()))},
            "/api/topic-permissions/{vhost}/{user}": topic_permissions,
        }

    # -- users

    def _whoami(self, call: Call) -> Response:
        return json_response({"name": call.user.name, "tags": call.user.tags})

    def _users(self, call: Call) -> Response:
        return json_response([_user(user) for user in self._access.users()])

    def _user(self, call: Call) -> Response:
        return json_response(_user(self._access.user(call.parts[0])))

    def _put_user(self, call: Call) -> Response:
        (name,) = call.parts
        body = call.body()
        tags = _tags(body)
        before = self._access.find(name)
        if body.get("keep_password") is True:
            self._access.set_tags(name, tags)
            return self._lasts(DONE)
        password = _password(body)
        self._access.put_user(name, password, tags)
        return self._lasts(CREATED if before is None else DONE)

    def _delete_user(self, call: Call) -> Response:
        self._access.delete_user(call.parts[0])
        return self._lasts(DONE)

    # -- permissions

    def _permissions_of_user(self, call: Call) -> Response:
        return _list(self._access.permissions(user=self._access.user(call.parts[0]).name))

    def _topic_permissions_of_user(self, call: Call) -> Response:
        return _list(self._access.topic_permissions(user=self._access.user(call.parts[0]).name))

    def _permissions_in(self, call: Call) -> Response:
        return _list(self._access.permissions(call.parts[0]))

    def _topic_permissions_in(self, call: Call) -> Response:
        return _list(self._access.topic_permissions(call.parts[0]))

    def _permission(self, call: Call) -> Response:
        namespace, user = call.parts
        found = self._access.permissions(namespace, user)
        if not found:
            raise NotFoundError(f"the user {user} has no permissions in namespace {namespace}")
        return json_response(_permission(found[0]))

    def _set_permissions(self, call: Call) -> Response:
        namespace, user = call.parts
        new = not self._access.may_enter(user, namespace)
        patterns = {what: call.text(what) for what in ("configure", "write", "read")}
        self._access.set_permissions(namespace, user, **patterns)
        return self._lasts(CREATED if new else DONE)

    def _clear_permissions(self, call: Call) -> Response:
        self._access.clear_permissions(*call.parts)
        return self._lasts(DONE)

    def _topic_permissions_of(self, call: Call) -> Response:
        return _list(self._access.topic_permissions(*call.parts))

    def _set_topic_permissions(self, call: Call) -> Response:
        namespace, user = call.parts
        exchange = call.text("exchange")
        new = all(one.exchange != exchange for one in self._access.topic_permissions(namespace, user))
        self._access.set_topic_permissions(namespace, user, exchange, call.text("write"), call.text("read"))
        return self._lasts(CREATED if new else DONE)

    def _clear_topic_permissions(self, call: Call) -> Response:
        self._access.user(call.parts[1])
        self._access.clear_topic_permissions(*call.parts)
        return self._lasts(DONE)

    def _lasts(self, status: int) -> Response:
        return lasting(Response(status, b""), self._core.ticket)


def _user(user: User) -> dict[str, Any]:
    return {"name": user.name, "tags": user.tags, "has_password": user.has_password, "limits": {}}


def _permission(permission: Permission | TopicPermission) -> dict[str, Any]:
    fields = asdict(permission)
    return {"user": fields.pop("user"), "vhost": fields.pop("namespace"), **fields}


def _list(permissions: Iterable[Permission | TopicPermission]) -> Response:
    return json_response([_permission(one) for one in permissions])


def _tags(body: dict[str, Any]) -> list[str]:
    tags = body.get("tags")
    if isinstance(tags, str):
        return [tag.strip() for tag in tags.split(",") if tag.strip()]
    if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags):
        return tags
    raise InvalidError('the body needs tags: a list of words, or one text with commas between them ("" for none)')


def _password(body: dict[str, Any]) -> str | None:
    """None: the user has none, and can only come in by a certificate."""
    password = body.get("password")
    if body.get("password_hash"):
        raise InvalidError(
            "a password_hash cannot be taken over, for passwords are kept in another form here; give the password"
        )
    if password is not None and not isinstance(password, str):
        raise InvalidError("the password must be text")
    return password
