"""What the producer and the consumer have in common: an exchange, a queue, and the binding between them.

Both declare it, so that it does not matter who starts first; declaring again what is there changes nothing.
"""

from pika.adapters.blocking_connection import BlockingChannel

EXCHANGE = "orders"
QUEUE = "orders.to-ship"
KEY = "order.placed"


def declare(channel: BlockingChannel) -> None:
    """All durable: it is there after a restart of the broker."""
    channel.exchange_declare(EXCHANGE, exchange_type="direct", durable=True)
    channel.queue_declare(QUEUE, durable=True)
    channel.queue_bind(QUEUE, EXCHANGE, routing_key=KEY)
