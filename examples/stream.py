"""A stream: a log that is read by offset, from anywhere and as often as you like. Reading takes nothing out.

It prints:

    from the first: 0=opened 1=sold 2=sold 3=closed
    from offset 2: 2=sold 3=closed
    the last: 3=closed
"""

import pika
from connecting import connect

STREAM = "examples.journal"
EVENTS = ("opened", "sold", "sold", "closed")


def read(connection: pika.BlockingConnection, offset: str | int, count: int) -> str:
    """So many messages from an offset: a number, "first", "last", "next", a time, or how far back, such as "1h"."""
    channel = connection.channel()
    channel.basic_qos(prefetch_count=100)  # streams ask for it, and acknowledgements make room for more
    found = []
    for method, properties, body in channel.consume(STREAM, arguments={"x-stream-offset": offset}):
        channel.basic_ack(method.delivery_tag)
        found.append(f"{properties.headers['x-stream-offset']}={body.decode()}")
        if len(found) == count:
            break
    channel.close()
    return " ".join(found)


def main() -> None:
    with connect("stream") as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        # Kept until the limits are reached, whether anybody has read it or not.
        limits = {"x-queue-type": "stream", "x-max-age": "7D", "x-max-length-bytes": 1_000_000_000}
        channel.queue_declare(STREAM, durable=True, arguments=limits)
        for event in EVENTS:
            channel.basic_publish("", STREAM, event.encode())
        print("from the first:", read(connection, "first", 4))
        print("from offset 2:", read(connection, 2, 2))
        print("the last:", read(connection, "last", 1))
        channel.queue_delete(STREAM)


if __name__ == "__main__":
    main()
