"""Move a queue's messages from one broker to another, with their properties, in order, and without losing one.

    python move_messages.py SOURCE_URL TARGET_URL QUEUE [QUEUE ...]

Each is acknowledged at the source once the target has confirmed it: if this program dies, run it again, and at worst
some come twice. The queues must be there on both sides (see move_definitions.py), and nobody should consume meanwhile.
"""

import sys

import pika

AT_ONCE = 500


def move(source: pika.BlockingConnection, target: pika.BlockingConnection, queue: str) -> int:
    """How many messages it moved."""
    taking, giving = source.channel(), target.channel()
    giving.confirm_delivery()
    taking.basic_qos(prefetch_count=AT_ONCE)
    left = taking.queue_declare(queue, passive=True).method.message_count
    moved = 0
    for method, properties, body in taking.consume(queue, inactivity_timeout=2):
        if method is None:
            break  # there are no more
        giving.basic_publish("", queue, body, properties, mandatory=True)  # an error here, and the message stays
        taking.basic_ack(method.delivery_tag)
        moved += 1
        if moved == left:
            break
    taking.cancel()
    return moved


def main(source_url: str, target_url: str, queues: list[str]) -> None:
    source = pika.BlockingConnection(pika.URLParameters(source_url))
    target = pika.BlockingConnection(pika.URLParameters(target_url))
    with source, target:
        for queue in queues:
            print(f"{queue}: {move(source, target, queue)} moved")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
