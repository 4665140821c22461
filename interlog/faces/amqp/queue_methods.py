"""queue.declare, bind, unbind, purge and delete: of queues, and of streams, which are topics of the core."""

import secrets
from typing import TYPE_CHECKING, Any, Final

from interlog.base.errors import (
    InequivalentError,
    InUseError,
    InvalidError,
    LimitError,
    LockedError,
    NotEmptyError,
    NotFoundError,
)
from interlog.core.exchange_objects import RESERVED
from interlog.core.queue_settings import DECLARED
from interlog.core.topics import Topic
from interlog.core.work_queue import WorkQueue
from interlog.faces.amqp import errors
from interlog.faces.amqp import methods as m
from interlog.faces.amqp.arguments import (
    NAMES,
    STREAM_NAMES,
    check_declared,
    one_line,
    queue_kind,
    queue_settings,
    stream_message_bytes,
    stream_settings,
    told,
)
from interlog.faces.amqp.errors import AmqpError, ReplyCode, precondition
from interlog.faces.amqp.exchange_arguments import check_binding
from interlog.faces.amqp.service import REPLY_TO

if TYPE_CHECKING:
    from interlog.faces.amqp.channel import Channel

_OWNED: Final = 100  # queues of one connection, before it is looked whether they are still there


def named(channel: "Channel", name: str) -> str:
    """The queue that is meant: no name is the one this channel declared last."""
    if name:
        return name
    if not channel.last_queue:
        raise errors.no_previous_queue()
    return channel.last_queue


def find(channel: "Channel", name: str) -> WorkQueue | Topic:
    """The queue or stream; 404 if there is none, 405 if it is another connection's alone."""
    connection, core = channel.connection, channel.core
    queue = core.work_queues.find(connection.vhost, name)
    if queue is not None:
        check_owner(channel, queue)
        return queue
    try:
        return core.topic(connection.vhost, name)
    except NotFoundError:
        raise errors.not_found("queue", name, connection.vhost) from None


def check_owner(channel: "Channel", queue: WorkQueue) -> None:
    try:
        channel.core.work_queues.check_owner(queue, channel.connection)
    except LockedError:
        raise errors.locked(queue.name, queue.namespace) from None


# -- declare


def declare(channel: "Channel", method: m.QueueDeclare) -> None:
    connection, core = channel.connection, channel.core
    name = one_line(method.queue)
    if name.startswith(REPLY_TO):
        _declare_reply(channel, name)
        return
    if method.passive:
        found = find(channel, name)  # no name is no queue here: there is nothing that it could stand for
        channel.last_queue = name
        if isinstance(found, WorkQueue):
            found.used_ms = connection.now_ms
        _declared(channel, method, name, found, lasts=False)
        return
    if not name:
        name = "amq.gen-" + secrets.token_urlsafe(16)
    elif name.startswith(RESERVED):
        raise errors.reserved_name("queue", name)
    connection.check_access("configure", "queue", name)
    generation = core.generation
    queue = _make(channel, method, name)
    channel.last_queue = name
    lasts = core.generation != generation and (isinstance(queue, Topic) or queue.durable)
    _declared(channel, method, name, queue, lasts=lasts)


def _make(channel: "Channel", method: m.QueueDeclare, name: str) -> WorkQueue | Topic:
    connection, core = channel.connection, channel.core
    vhost = connection.vhost
    arguments = method.arguments
    kind = queue_kind(name, vhost, arguments, _default_kind(channel, method))
    if kind != "classic":
        arguments = arguments | {"x-queue-type": kind}
    taken = core.work_queues.find(vhost, name)
    if taken is not None:
        check_owner(channel, taken)
    if kind != "classic":
        _check_replicated(kind, name, vhost, method)
    try:
        if kind == "stream":
            return _make_stream(channel, name, arguments)
        settings = queue_settings(kind, name, vhost, arguments)
        exchange = settings.get("dead_letter_exchange")
        if exchange is not None and taken is None:
            connection.check_access("read", "queue", name)
            connection.check_access("write", "exchange", exchange)
        if method.auto_delete:
            settings["auto_delete"] = True
        owner = connection if method.exclusive else None
        durable = method.durable and owner is None  # a queue of one connection never outlasts it
        queue = core.work_queues.declare(vhost, name, settings, durable=durable, owner=owner)
        if taken is not None:
            _compare(taken, arguments)
    except InequivalentError as error:
        if taken is not None and error.what in NAMES:
            _compare(taken, arguments)
        raise _inequivalent(name, vhost, error) from None
    except LockedError:
        raise errors.locked(name, vhost) from None
    except (InvalidError, LimitError) as error:
        raise precondition(str(error)) from None
    if owner is not None:
        if len(connection.owned) >= _OWNED:  # those that went by themselves are still among them
            connection.owned = {one: None for one in connection.owned if not one.closed}
        connection.owned[queue] = None
    return queue


def _default_kind(channel: "Channel", method: m.QueueDeclare) -> str:
    """What a queue is whose arguments do not say it: what the vhost says, where the queue can be that."""
    if not method.durable or method.exclusive or method.auto_delete:
        return "classic"
    settings = channel.core.catalog.namespace(channel.connection.vhost).settings
    return str(settings.get("default_queue_type", "classic"))


def _check_replicated(kind: str, name: str, vhost: str, method: m.QueueDeclare) -> None:
    """What quorum queues and streams cannot be."""
    for what, wrong in (
        ("auto-delete", method.auto_delete),
        ("exclusive-owner", method.exclusive),
        ("non-durable", not method.durable),
    ):
        if wrong:
            raise precondition(f"invalid property '{what}' for {errors.subject('queue', name, vhost)}")


def _make_stream(channel: "Channel", name: str, arguments: dict[str, Any]) -> Topic:
    vhost, core = channel.connection.vhost, channel.core
    settings = stream_settings(name, vhost, arguments)
    queue = core.work_queues.find(vhost, name)
    if queue is not None:
        _compare(queue, arguments)
        raise errors.inequivalent("queue", name, vhost, "x-queue-type", "stream", queue.settings.kind)
    try:
        topic = core.topic(vhost, name)
    except NotFoundError:
        room = stream_message_bytes(channel.connection.settings.max_message_bytes)
        return core.create_topic(vhost, name, 1, {"max_message_bytes": room, **settings})
    for setting, argument in STREAM_NAMES.items():
        wanted, found = settings.get(setting, -1), topic.item.settings.get(setting, -1)  # -1: without a limit
        if found != wanted:
            both = errors.argument(None if wanted == -1 else wanted, None if found == -1 else found)
            raise errors.inequivalent("queue", name, vhost, argument, *both)
    return topic


def _compare(queue: WorkQueue, arguments: dict[str, Any]) -> None:
    declared = queue.item.settings.get(DECLARED)
    if declared is not None:
        check_declared(queue.name, queue.namespace, told(arguments), declared)


def _inequivalent(name: str, vhost: str, error: InequivalentError) -> AmqpError:
    wanted, found = error.wanted, error.found
    if error.what in NAMES:
        if error.what == "kind":
            wanted, found = errors.argument(wanted if wanted != "classic" else None, found)
            return errors.inequivalent("queue", name, vhost, "x-queue-type", wanted, found)
        wanted, found = errors.argument(wanted or None, found or None)
        return errors.inequivalent("queue", name, vhost, NAMES[error.what], wanted, found)
    return errors.inequivalent("queue", name, vhost, error.what, wanted, found)


def _declared(channel: "Channel", method: m.QueueDeclare, name: str, queue: WorkQueue | Topic, *, lasts: bool) -> None:
    if method.nowait:
        return
    if isinstance(queue, WorkQueue):
        queue.settled()
        answer = m.QueueDeclareOk(name, queue.ready, queue.consumer_count)
    else:
        answer = m.QueueDeclareOk(name, stream_depth(queue), 0)
    channel.reply(answer, lasts=lasts)


def stream_depth(topic: Topic) -> int:
    return sum(topic.log_end(index) - topic.log_start(index) for index in range(len(topic)))


def _declare_reply(channel: "Channel", name: str) -> None:
    """Whether who asked for a reply is still there."""
    if name != REPLY_TO and channel.connection.service.replies.find(name) is None:
        raise errors.not_found("queue", name, channel.connection.vhost)
    channel.reply(m.QueueDeclareOk(name, 0, 1))


# -- bindings


def bind(channel: "Channel", method: m.QueueBind) -> None:
    generation = channel.core.generation
    name, key, lasts = _binding(channel, method.queue, method.exchange, method.routing_key)
    check_binding(channel.connection.exchange(method.exchange).kind, key, method.arguments)
    try:
        channel.core.exchanges.bind(channel.connection.vhost, method.exchange, name, key, method.arguments)
    except (InvalidError, LimitError) as error:
        raise precondition(str(error)) from None
    if not method.nowait:
        channel.reply(m.QueueBindOk(), lasts=lasts and channel.core.generation != generation)


def unbind(channel: "Channel", method: m.QueueUnbind) -> None:
    generation = channel.core.generation
    try:
        name, key, lasts = _binding(channel, method.queue, method.exchange, method.routing_key)
    except AmqpError as error:
        if error.code is not ReplyCode.NOT_FOUND or not (method.queue or channel.last_queue):
            raise
        name, key, lasts = named(channel, method.queue), method.routing_key, False  # to take off what is not there
    channel.core.exchanges.unbind(channel.connection.vhost, method.exchange, name, key, method.arguments)
    channel.reply(m.QueueUnbindOk(), lasts=lasts and channel.core.generation != generation)


def _binding(channel: "Channel", queue: str, exchange: str, key: str) -> tuple[str, str, bool]:
    """Queue, key, and whether the binding lasts; checks that both ends are there and may be bound."""
    connection = channel.connection
    if not queue and not key:
        key = channel.last_queue
    name = named(channel, queue)
    if not exchange:
        raise errors.default_exchange()
    connection.check_access("write", "queue", name)
    connection.check_access("read", "exchange", exchange)
    source = connection.exchange(exchange)
    found = find(channel, name)
    if source.kind == "topic":
        connection.check_key("read", exchange, key)
    return name, key, source.durable and (isinstance(found, Topic) or found.durable)


# -- purge and delete


def purge(channel: "Channel", method: m.QueuePurge) -> None:
    name = named(channel, method.queue)
    channel.connection.check_access("read", "queue", name)
    queue = find(channel, name)
    if isinstance(queue, Topic):
        raise errors.not_implemented(
            f"queue.purge not supported by stream queues {errors.subject('queue', name, channel.connection.vhost)}"
        )
    count = queue.purge()
    if not method.nowait:
        channel.reply(m.QueuePurgeOk(count))


def delete(channel: "Channel", method: m.QueueDelete) -> None:
    connection, core = channel.connection, channel.core
    vhost = connection.vhost
    name = named(channel, method.queue)
    connection.check_access("configure", "queue", name)
    count = 0
    lasts = False
    try:
        queue = find(channel, name)
    except AmqpError as error:
        if error.code is not errors.ReplyCode.NOT_FOUND:
            raise
        queue = None  # to delete what is not there is no error
    if isinstance(queue, WorkQueue):
        lasts = queue.durable
        try:
            count = core.work_queues.delete(queue, if_unused=method.if_unused, if_empty=method.if_empty)
        except InUseError:
            raise errors.in_use("queue", name, vhost) from None
        except NotEmptyError:
            raise errors.not_empty(name, vhost) from None
        connection.owned.pop(queue, None)
    elif queue is not None:
        count, lasts = stream_depth(queue), True
        core.delete_topic(vhost, name)
    if not method.nowait:
        channel.reply(m.QueueDeleteOk(count), lasts=lasts)
