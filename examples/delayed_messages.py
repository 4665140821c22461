"""Delayed messages: an exchange of type x-delayed-message holds a message for `x-delay` milliseconds.

Built into Interlog; a RabbitMQ needs the plugin rabbitmq_delayed_message_exchange for it. It prints:

    at once, later, last
"""

import sys

import pika
import pika.exceptions
from connecting import connect

EXCHANGE, QUEUE = "examples.reminders", "examples.reminders"
DELAYS = {"last": 400, "later": 200, "at once": 0}


def main() -> None:
    with connect("delayed messages") as connection:
        channel = connection.channel()
        try:
            # It routes like the type that x-delayed-type names, when the time has come.
            arguments = {"x-delayed-type": "direct"}
            channel.exchange_declare(EXCHANGE, "x-delayed-message", durable=True, arguments=arguments)
        except pika.exceptions.ConnectionClosedByBroker as error:
            sys.exit(f"this broker has no delayed messages: {error.reply_text}")
        channel.queue_declare(QUEUE, durable=True)
        channel.queue_bind(QUEUE, EXCHANGE, routing_key="reminder")
        for body, delay_ms in DELAYS.items():
            properties = pika.BasicProperties(headers={"x-delay": delay_ms}, delivery_mode=2)
            channel.basic_publish(EXCHANGE, "reminder", body.encode(), properties)
        got = []
        for method, _, body in channel.consume(QUEUE):
            channel.basic_ack(method.delivery_tag)
            got.append(body.decode())
            if len(got) == len(DELAYS):
                break
        print(", ".join(got))
        channel.cancel()
        channel.queue_delete(QUEUE)
        channel.exchange_delete(EXCHANGE)


if __name__ == "__main__":
    main()
