"""Publish and subscribe: a fanout exchange gives each message to every queue that is bound to it.

It prints:

    screen: the shop opens
    log file: the shop opens
    screen: the shop closes
    log file: the shop closes
"""

from connecting import connect

EXCHANGE = "examples.news"


def main() -> None:
    with connect("publish and subscribe") as connection:
        channel = connection.channel()
        channel.exchange_declare(EXCHANGE, exchange_type="fanout")
        queues = {}
        for name in ("screen", "log file"):
            # A queue of this connection alone, with a name that the broker chooses; it goes with the connection.
            queues[name] = channel.queue_declare("", exclusive=True).method.queue
            channel.queue_bind(queues[name], EXCHANGE)
        for news in ("the shop opens", "the shop closes"):
            channel.basic_publish(EXCHANGE, "", news.encode())
            for name, queue in queues.items():
                _, _, body = next(channel.consume(queue, auto_ack=True, inactivity_timeout=10))
                print(f"{name}: {body.decode()}")
                channel.cancel()
        channel.exchange_delete(EXCHANGE)


if __name__ == "__main__":
    main()
