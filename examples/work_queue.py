"""A work queue: each task goes to one worker, and none to a worker that is busy.

It prints:

    quick did task 1
    quick did task 3
    quick did task 4
    quick did task 5
    slow did task 2
"""

from connecting import connect
from pika.adapters.blocking_connection import BlockingChannel
from pika.spec import Basic

QUEUE = "examples.tasks"


class Worker:
    """On a channel of its own; in real life, in a program of its own."""

    def __init__(self, name: str, channel: BlockingChannel) -> None:
        self.name = name
        self.tasks: list[tuple[int, str]] = []  # not done yet
        self._channel = channel
        channel.basic_qos(prefetch_count=1)  # the next task only when the last one is acknowledged
        channel.basic_consume(QUEUE, self._on_task)

    def _on_task(self, channel: object, method: Basic.Deliver, properties: object, body: bytes) -> None:
        self.tasks.append((method.delivery_tag, body.decode()))

    def do_one(self) -> int:
        """How many tasks it did."""
        if not self.tasks:
            return 0
        tag, task = self.tasks.pop()
        print(f"{self.name} did task {task}")
        self._channel.basic_ack(tag)
        return 1


def main() -> None:
    with connect("work queue") as connection:
        channel = connection.channel()
        channel.queue_declare(QUEUE, durable=True)
        quick, slow = Worker("quick", connection.channel()), Worker("slow", connection.channel())
        for number in range(1, 6):
            channel.basic_publish("", QUEUE, str(number).encode())
        done = 0
        while done < 4:  # slow is at its first task all the while
            connection.process_data_events(time_limit=1)
            done += quick.do_one()
        slow.do_one()
        channel.queue_delete(QUEUE)


if __name__ == "__main__":
    main()
