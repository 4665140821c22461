"""A member of a group that can be killed: `python group_member.py ADDRESS TOPIC SETTINGS-AS-JSON`.

Says what it is assigned, one line of JSON each time that changes, and reads on until it dies.
"""

import json
import sys
from typing import Any

import confluent_kafka as ck


def main() -> None:
    address, topic, settings = sys.argv[1:]
    consumer = ck.Consumer({"bootstrap.servers": address, **json.loads(settings)})
    last: Any = None
    consumer.subscribe([topic])
    while True:
        consumer.poll(0.02)
        now = sorted(part.partition for part in consumer.assignment())
        if now != last:
            last = now
            print(json.dumps(now), flush=True)


if __name__ == "__main__":
    main()
