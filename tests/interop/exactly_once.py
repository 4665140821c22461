"""A worker that can be killed: `python exactly_once.py ADDRESS SOURCE TARGET NAME`.

Reads numbers from SOURCE and writes their squares to TARGET; both and its position are one transaction each time. It
says how many numbers it has taken so far, a line each time.
"""

import sys

import confluent_kafka as ck


def main() -> None:
    address, source, target, name = sys.argv[1:]
    quick = {"bootstrap.servers": address, "retry.backoff.ms": 20, "reconnect.backoff.ms": 10}
    quick["reconnect.backoff.max.ms"] = 50
    consumer = ck.Consumer(
        {
            **quick,
            "group.id": name,
            "session.timeout.ms": 1_000,
            "heartbeat.interval.ms": 100,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 20,
        }
    )
    producer = ck.Producer({**quick, "transactional.id": name, "linger.ms": 0, "transaction.timeout.ms": 5_000})
    producer.init_transactions(10)
    consumer.subscribe([source])
    taken = 0
    while True:
        messages = [message for message in consumer.consume(7, 0.05) if message.error() is None]
        if not messages:
            continue
        producer.begin_transaction()
        for message in messages:
            number = int(message.value() or b"")
            producer.produce(target, b"%d" % number**2, key=message.key())
        positions = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(
            [position for position in positions if position.offset >= 0], consumer.consumer_group_metadata(), 10
        )
        producer.commit_transaction(10)
        taken += len(messages)
        print(taken, flush=True)


if __name__ == "__main__":
    main()
