"""basic.qos, consume, cancel, get, ack, nack, reject and recover; channel.flow; what is left of access.request."""

import secrets
from typing import TYPE_CHECKING

from interlog.base.errors import InUseError
from interlog.core.topics import Topic
from interlog.faces.amqp import errors
from interlog.faces.amqp import methods as m
from interlog.faces.amqp.consumer import QueueConsumer
from interlog.faces.amqp.consumer_arguments import consumer_settings
from interlog.faces.amqp.errors import precondition
from interlog.faces.amqp.messages import got
from interlog.faces.amqp.queue_methods import find, named
from interlog.faces.amqp.service import REPLY_TO
from interlog.faces.amqp.stream_consumer import consume_stream
from interlog.faces.amqp.wire import Method

if TYPE_CHECKING:
    from interlog.faces.amqp.channel import Channel


def channel_open_again(channel: "Channel", method: m.ChannelOpen) -> None:
    raise errors.channel_already_open()


def ignored(channel: "Channel", method: Method) -> None:
    """An answer that nobody waits for."""


def access_request(channel: "Channel", method: m.AccessRequest) -> None:
    """From before permissions; old clients still ask, and every ticket is as good as another."""
    channel.reply(m.AccessRequestOk(1))


def flow(channel: "Channel", method: m.ChannelFlow) -> None:
    channel.client_stopped = not method.active
    channel.reply(m.ChannelFlowOk(method.active))
    if method.active:
        channel.look_again()


def qos(channel: "Channel", method: m.BasicQos) -> None:
    if method.prefetch_size:
        raise errors.not_implemented(f"prefetch_size!=0 ({method.prefetch_size})")
    if method.global_:
        channel.shared_prefetch = method.prefetch_count
        channel.look_again()
    else:
        channel.prefetch = method.prefetch_count
    channel.reply(m.BasicQosOk())


def consume(channel: "Channel", method: m.BasicConsume) -> None:
    connection = channel.connection
    tag = method.consumer_tag or "amq.ctag-" + secrets.token_urlsafe(16)
    if method.queue == REPLY_TO:
        _consume_replies(channel, method, tag)
        return
    name = named(channel, method.queue)
    connection.check_access("read", "queue", name)
    if tag in channel.consumers or tag == channel.reply_tag:
        raise errors.consumer_tag_taken(tag)
    queue = find(channel, name)
    if isinstance(queue, Topic):
        consume_stream(channel, method, tag, queue)
        return
    asked = consumer_settings(queue.settings.kind, name, connection.vhost, method.arguments)
    consumer = QueueConsumer(
        channel,
        tag,
        queue,
        for_good=method.no_ack,
        prefetch=channel.prefetch,
        priority=asked.get("priority", 0),
        timeout_ms=asked.get("timeout_ms"),
    )
    try:
        queue.add_consumer(consumer, exclusive=method.exclusive)
    except InUseError:
        raise errors.exclusive_use(name, connection.vhost) from None
    channel.consumers[tag] = consumer
    if not method.nowait:
        channel.reply(m.BasicConsumeOk(tag))


def _consume_replies(channel: "Channel", method: m.BasicConsume, tag: str) -> None:
    if not method.no_ack:
        raise precondition("reply consumer cannot acknowledge")
    if channel.reply_address is not None:
        raise precondition("reply consumer already set")
    if tag in channel.consumers:
        raise errors.consumer_tag_taken(tag)
    channel.consume_replies(tag)
    if not method.nowait:
        channel.reply(m.BasicConsumeOk(tag))


def cancel(channel: "Channel", method: m.BasicCancel) -> None:
    """To cancel what is not there is no error."""
    channel.cancel(method.consumer_tag)
    if not method.nowait:
        channel.reply(m.BasicCancelOk(method.consumer_tag))


def get(channel: "Channel", method: m.BasicGet) -> None:
    connection = channel.connection
    name = named(channel, method.queue)
    connection.check_access("read", "queue", name)
    queue = find(channel, name)
    if isinstance(queue, Topic):
        what = f"basic.get not supported by stream queues {errors.subject('queue', name, connection.vhost)}"
        raise errors.not_implemented(what)
    found = queue.get(channel.holder, for_good=method.no_ack)
    if found is None:
        channel.reply(m.BasicGetEmpty())
        return
    lane, message = found
    if method.no_ack:
        tag = channel.next_tag
        channel.next_tag += 1
    else:
        tag = channel.hold(queue, lane, message[0])
    counts = queue.settings.kind == "quorum"
    channel.write(got(channel.number, tag, message, queue.ready, connection.body_max, counts=counts))
    connection.service.delivered.value += 1


def ack(channel: "Channel", method: m.BasicAck) -> None:
    channel.ack(method.delivery_tag, method.multiple)


def nack(channel: "Channel", method: m.BasicNack) -> None:
    channel.reject(method.delivery_tag, method.multiple, method.requeue)


def reject(channel: "Channel", method: m.BasicReject) -> None:
    channel.reject(method.delivery_tag, False, method.requeue)


def recover(channel: "Channel", method: m.BasicRecover | m.BasicRecoverAsync) -> None:
    if not method.requeue:
        raise errors.not_implemented("requeue=false")
    channel.requeue(channel.collect(0, True))
    if isinstance(method, m.BasicRecover):
        channel.reply(m.BasicRecoverOk())
