"""Take orders off the queue and acknowledge each when its work is done. Ctrl-C ends it.

    python consumer.py [HOW MANY]

A message that was not acknowledged when this program dies is delivered again, to whoever consumes next. After
`python producer.py` it prints:

    shipped order 1: coffee
    shipped order 2: coffee
    shipped order 3: coffee
"""

import json
import sys

import orders
import pika
from connecting import connect
from pika.adapters.blocking_connection import BlockingChannel


def main(count: int) -> None:
    done = 0

    def on_order(
        channel: BlockingChannel, method: pika.spec.Basic.Deliver, properties: pika.BasicProperties, body: bytes
    ) -> None:
        nonlocal done
        try:
            order = json.loads(body)
        except ValueError:
            channel.basic_reject(method.delivery_tag, requeue=False)  # it would be as wrong the next time
            return
        print(f"shipped order {order['order']}: {order['drink']}", flush=True)
        channel.basic_ack(method.delivery_tag)
        done += 1
        if done == count:
            channel.stop_consuming()

    with connect("consumer") as connection:
        channel = connection.channel()
        orders.declare(channel)
        channel.basic_qos(prefetch_count=10)  # at most so many messages that are not acknowledged
        channel.basic_consume(orders.QUEUE, on_order)
        try:
            channel.start_consuming()
        except KeyboardInterrupt:
            channel.stop_consuming()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
