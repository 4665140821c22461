"""Remote calls by direct reply-to: the answer comes back without a queue for answers.

It prints:

    fibonacci(10) = 55
    fibonacci(30) = 832040
"""

import threading
import uuid

import pika
from connecting import connect

QUEUE = "examples.fibonacci"
REPLY_TO = "amq.rabbitmq.reply-to"  # a name that stands for "back to this channel"


def fibonacci(number: int) -> int:
    first, second = 0, 1
    for _ in range(number):
        first, second = second, first + second
    return first


def serve(ready: threading.Event) -> None:
    """Answer until a call without a number comes."""
    with connect("rpc server") as connection:
        channel = connection.channel()
        channel.queue_declare(QUEUE, auto_delete=True)
        ready.set()
        for method, properties, body in channel.consume(QUEUE):
            channel.basic_ack(method.delivery_tag)
            if not body:
                break
            answer = pika.BasicProperties(correlation_id=properties.correlation_id)
            channel.basic_publish("", properties.reply_to, str(fibonacci(int(body))).encode(), answer)


class Client:
    def __init__(self, connection: pika.BlockingConnection) -> None:
        self._connection = connection
        self._channel = connection.channel()
        self._answers: dict[str, bytes] = {}
        # Consume the answers before the first call, on the channel that calls, without acknowledgements.
        self._channel.basic_consume(REPLY_TO, self._on_answer, auto_ack=True)

    def _on_answer(self, channel: object, method: object, properties: pika.BasicProperties, body: bytes) -> None:
        self._answers[properties.correlation_id] = body

    def call(self, body: bytes) -> bytes:
        call = str(uuid.uuid4())
        properties = pika.BasicProperties(reply_to=REPLY_TO, correlation_id=call)
        self._channel.basic_publish("", QUEUE, body, properties)
        while call not in self._answers:
            self._connection.process_data_events(time_limit=None)
        return self._answers.pop(call)

    def stop_server(self) -> None:
        self._channel.basic_publish("", QUEUE, b"")


def main() -> None:
    ready = threading.Event()
    server = threading.Thread(target=serve, args=(ready,))
    server.start()
    ready.wait()
    with connect("rpc client") as connection:
        client = Client(connection)
        for number in (10, 30):
            print(f"fibonacci({number}) = {client.call(str(number).encode()).decode()}")
        client.stop_server()
        server.join()


if __name__ == "__main__":
    main()
