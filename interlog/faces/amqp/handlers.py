"""Which function does what a method asks. All but publish and the handshake's methods, which have ways of their own."""

from collections.abc import Callable
from typing import Any, Final

from interlog.faces.amqp import basic_methods as basic
from interlog.faces.amqp import exchange_methods as exchange
from interlog.faces.amqp import methods as m
from interlog.faces.amqp import queue_methods as queue
from interlog.faces.amqp import transaction as tx

__all__ = ["HANDLERS"]

HANDLERS: Final[dict[int, Callable[..., Any]]] = {
    m.ChannelOpen.id: basic.channel_open_again,
    m.ChannelFlow.id: basic.flow,
    m.ChannelFlowOk.id: basic.ignored,
    m.AccessRequest.id: basic.access_request,
    m.ExchangeDeclare.id: exchange.declare,
    m.ExchangeDelete.id: exchange.delete,
    m.ExchangeBind.id: exchange.bind,
    m.ExchangeUnbind.id: exchange.unbind,
    m.QueueDeclare.id: queue.declare,
    m.QueueBind.id: queue.bind,
    m.QueueUnbind.id: queue.unbind,
    m.QueuePurge.id: queue.purge,
    m.QueueDelete.id: queue.delete,
    m.BasicQos.id: basic.qos,
    m.BasicConsume.id: basic.consume,
    m.BasicCancel.id: basic.cancel,
    m.BasicCancelOk.id: basic.ignored,
    m.BasicGet.id: basic.get,
    m.BasicAck.id: basic.ack,
    m.BasicNack.id: basic.nack,
    m.BasicReject.id: basic.reject,
    m.BasicRecover.id: basic.recover,
    m.BasicRecoverAsync.id: basic.recover,
    m.ConfirmSelect.id: tx.confirm_select,
    m.TxSelect.id: tx.select,
    m.TxCommit.id: tx.commit,
    m.TxRollback.id: tx.rollback,
}
