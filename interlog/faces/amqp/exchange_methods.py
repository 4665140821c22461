"""exchange.declare, delete, bind and unbind."""

from typing import TYPE_CHECKING

from interlog.base.errors import InequivalentError, InUseError, InvalidError, LimitError, NotFoundError, RefusedError
from interlog.core.exchange_objects import RESERVED
from interlog.core.exchanges import Exchange
from interlog.faces.amqp import errors
from interlog.faces.amqp import methods as m
from interlog.faces.amqp.arguments import one_line
from interlog.faces.amqp.errors import AmqpError, ReplyCode, precondition
from interlog.faces.amqp.exchange_arguments import EXCHANGE_NAMES, check_binding, exchange_settings, exchange_type

if TYPE_CHECKING:
    from interlog.faces.amqp.channel import Channel


def declare(channel: "Channel", method: m.ExchangeDeclare) -> None:
    connection, core = channel.connection, channel.core
    vhost, name = connection.vhost, one_line(method.exchange)
    if not name:
        raise errors.default_exchange()
    if method.passive:
        connection.exchange(name)
        if not method.nowait:
            channel.reply(m.ExchangeDeclareOk())
        return
    made = exchange_settings(name, vhost, method.type, method.arguments)
    connection.check_access("configure", "exchange", name)
    if made["alternate"] is not None and not core.exchanges.exists(vhost, name):
        connection.check_access("read", "exchange", name)
        connection.check_access("write", "exchange", made["alternate"])
    generation = core.generation
    try:
        core.exchanges.declare(
            vhost, name, durable=method.durable, auto_delete=method.auto_delete, internal=method.internal, **made
        )
    except InequivalentError as error:
        raise _inequivalent(connection.exchange(name), method, error) from None
    except RefusedError:
        raise errors.reserved_name("exchange", name) from None
    except (InvalidError, LimitError) as error:
        raise precondition(str(error)) from None
    if not method.nowait:
        channel.reply(m.ExchangeDeclareOk(), lasts=method.durable and core.generation != generation)


def _inequivalent(exchange: Exchange, method: m.ExchangeDeclare, error: InequivalentError) -> AmqpError:
    vhost, name = exchange.namespace, exchange.name
    if error.what in ("kind", "delayed"):
        found = exchange_type(exchange.kind, exchange.delayed)
        return errors.inequivalent("exchange", name, vhost, "type", method.type, found)
    if error.what == "alternate":
        wanted, was = errors.argument(error.wanted, error.found)
        return errors.inequivalent("exchange", name, vhost, "alternate-exchange", wanted, was)
    if error.what == "cache_lasts":
        wanted, was = ("disk" if one else "memory" for one in (error.wanted, error.found))
        return errors.inequivalent("exchange", name, vhost, "x-cache-persistence", wanted, was)
    if error.what in EXCHANGE_NAMES:
        wanted, was = errors.argument(error.wanted, error.found)
        return errors.inequivalent("exchange", name, vhost, EXCHANGE_NAMES[error.what], wanted, was)
    return errors.inequivalent("exchange", name, vhost, error.what, error.wanted, error.found)


def delete(channel: "Channel", method: m.ExchangeDelete) -> None:
    connection, core = channel.connection, channel.core
    vhost, name = connection.vhost, method.exchange
    if not name:
        raise errors.default_exchange()
    if name.startswith(RESERVED):
        raise errors.system_exchange(name, vhost)
    connection.check_access("configure", "exchange", name)
    generation = core.generation
    lasts = False
    try:
        lasts = core.exchanges.get(vhost, name).durable
        core.exchanges.delete(vhost, name, if_unused=method.if_unused)
    except NotFoundError:
        pass  # to delete what is not there is no error
    except InUseError:
        raise errors.in_use("exchange", name, vhost) from None
    if not method.nowait:
        channel.reply(m.ExchangeDeleteOk(), lasts=lasts and core.generation != generation)


def bind(channel: "Channel", method: m.ExchangeBind) -> None:
    generation = channel.core.generation
    lasts = _check(channel, method.source, method.destination, method.routing_key)
    check_binding(channel.connection.exchange(method.source).kind, method.routing_key, method.arguments)
    try:
        channel.core.exchanges.bind(
            channel.connection.vhost,
            method.source,
            method.destination,
            method.routing_key,
            method.arguments,
            to_queue=False,
        )
    except (InvalidError, LimitError) as error:
        raise precondition(str(error)) from None
    if not method.nowait:
        channel.reply(m.ExchangeBindOk(), lasts=lasts and channel.core.generation != generation)


def unbind(channel: "Channel", method: m.ExchangeUnbind) -> None:
    generation = channel.core.generation
    try:
        lasts = _check(channel, method.source, method.destination, method.routing_key)
    except AmqpError as error:
        if error.code is not ReplyCode.NOT_FOUND:
            raise
        lasts = False  # to take off what is not there is no error
    channel.core.exchanges.unbind(
        channel.connection.vhost,
        method.source,
        method.destination,
        method.routing_key,
        method.arguments,
        to_queue=False,
    )
    if not method.nowait:
        channel.reply(m.ExchangeUnbindOk(), lasts=lasts and channel.core.generation != generation)


def _check(channel: "Channel", source: str, destination: str, key: str) -> bool:
    """Whether the binding lasts; that both ends are there, and may be bound."""
    connection = channel.connection
    if not source or not destination:
        raise errors.default_exchange()
    connection.check_access("write", "exchange", destination)
    connection.check_access("read", "exchange", source)
    to, of = connection.exchange(destination), connection.exchange(source)
    if of.kind == "topic":
        connection.check_key("read", source, key)
    return to.durable and of.durable
