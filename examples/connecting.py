"""Where the broker is, and how these programs reach it: the one place to change for another host, user or vhost.

AMQP_URL says it, such as amqp://ann:secret@broker.example.org:5672/team-a; the vhost / is written %2F. Without it,
guest comes in from the same machine.
"""

import os

import pika

URL = os.environ.get("AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/%2F")


def connect(name: str) -> pika.BlockingConnection:
    """An open connection. `name` is shown in the broker's log."""
    parameters = pika.URLParameters(URL)
    parameters.client_properties = {"connection_name": name}
    return pika.BlockingConnection(parameters)
