"""Retries and dead letters: what fails waits a while and comes again; what fails too often is put aside.

A rejected message goes from `work` to `wait`, whose messages live for 100 ms and then go back to `work`. The header
`x-death` says how often a message has been that way. It prints:

    letter 1: done
    letter 2: failed, attempt 1
    letter 2: failed, attempt 2
    letter 2: failed, attempt 3
    letter 2: put aside
"""

import pika
from connecting import connect

WORK, WAIT, ASIDE = "examples.work", "examples.wait", "examples.aside"
ATTEMPTS = 3
WAIT_MS = 100


def attempts_of(properties: pika.BasicProperties) -> int:
    """How often the message was rejected before."""
    deaths = (properties.headers or {}).get("x-death", [])
    return sum(death["count"] for death in deaths if death["queue"] == WORK and death["reason"] == "rejected")


def main() -> None:
    with connect("retries") as connection:
        channel = connection.channel()
        # Dead letters go by the default exchange, whose keys are names of queues.
        to_wait = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": WAIT}
        to_work = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": WORK, "x-message-ttl": WAIT_MS}
        channel.queue_declare(WORK, durable=True, arguments=to_wait)
        channel.queue_declare(WAIT, durable=True, arguments=to_work)
        channel.queue_declare(ASIDE, durable=True)
        for body in (b"letter 1", b"letter 2"):
            channel.basic_publish("", WORK, body, pika.BasicProperties(delivery_mode=2))

        for method, properties, body in channel.consume(WORK):
            letter, attempt = body.decode(), attempts_of(properties) + 1
            if letter == "letter 1":
                print(f"{letter}: done")
                channel.basic_ack(method.delivery_tag)
                continue
            print(f"{letter}: failed, attempt {attempt}")
            if attempt < ATTEMPTS:
                channel.basic_reject(method.delivery_tag, requeue=False)
                continue
            channel.basic_publish("", ASIDE, body, properties)
            channel.basic_ack(method.delivery_tag)
            break
        channel.cancel()

        _, _, body = next(channel.consume(ASIDE, auto_ack=True))
        print(f"{body.decode()}: put aside")
        channel.cancel()
        for queue in (WORK, WAIT, ASIDE):
            channel.queue_delete(queue)


if __name__ == "__main__":
    main()
