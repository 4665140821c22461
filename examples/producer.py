"""Publish orders that survive: persistent messages, each confirmed by the broker before the program goes on.

    python producer.py [HOW MANY]

It prints:

    order 1 is safe
    order 2 is safe
    order 3 is safe
"""

import json
import sys

import orders
import pika
import pika.exceptions
from connecting import connect


def main(count: int) -> None:
    with connect("producer") as connection:
        channel = connection.channel()
        orders.declare(channel)
        channel.confirm_delivery()  # basic_publish now waits until the broker has the message on its disk
        for number in range(1, count + 1):
            body = json.dumps({"order": number, "drink": "coffee"}).encode()
            properties = pika.BasicProperties(
                content_type="application/json",
                delivery_mode=pika.DeliveryMode.Persistent,
                message_id=f"order-{number}",
            )
            try:
                # mandatory: a message that no queue takes comes back, and is an error here
                channel.basic_publish(orders.EXCHANGE, orders.KEY, body, properties, mandatory=True)
            except pika.exceptions.UnroutableError:
                sys.exit(f"order {number}: there is no queue for it")
            except pika.exceptions.NackError:
                sys.exit(f"order {number}: the broker could not take it; publish it again")
            print(f"order {number} is safe")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
