"""Topics: keys are words with dots between them, and a binding may leave words open.

`*` stands for exactly one word, `#` for any number of them, none included. It prints:

    order.*.paid  gets  order.eu.paid, order.us.paid
    order.eu.#    gets  order.eu.paid, order.eu.vip.placed
    #             gets  order.eu.paid, order.us.paid, order.eu.vip.placed, stock.low
"""

from connecting import connect

EXCHANGE = "examples.events"
PATTERNS = ("order.*.paid", "order.eu.#", "#")
KEYS = ("order.eu.paid", "order.us.paid", "order.eu.vip.placed", "stock.low")


def main() -> None:
    with connect("topics") as connection:
        channel = connection.channel()
        channel.confirm_delivery()  # so that all is in the queues when it is looked at below
        channel.exchange_declare(EXCHANGE, exchange_type="topic")
        queues = {pattern: channel.queue_declare("", exclusive=True).method.queue for pattern in PATTERNS}
        for pattern, queue in queues.items():
            channel.queue_bind(queue, EXCHANGE, routing_key=pattern)
        for key in KEYS:
            channel.basic_publish(EXCHANGE, key, key.encode())
        for pattern, queue in queues.items():
            got = []
            while (body := channel.basic_get(queue, auto_ack=True)[2]) is not None:
                got.append(body.decode())
            print(f"{pattern:12}  gets  {', '.join(got)}")
        channel.exchange_delete(EXCHANGE)


if __name__ == "__main__":
    main()
