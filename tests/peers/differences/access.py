"""Permissions: what is asked of whom, and how it is refused."""

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.wire import Method
from tests.peers.differences.register import conversation
from tests.peers.differences.talk import Line, Talk


def _try_all(client: Line) -> None:
    methods: list[Method] = [
        m.QueueDeclare("q"),
        m.QueueDeclare("q", passive=True),
        m.QueueDeclare("new"),
        m.QueueDeclare(""),
        m.QueueDeclare("new", arguments={"x-dead-letter-exchange": "x"}),
        m.QueueDeclare("new", arguments={"x-dead-letter-exchange": ""}),
        m.QueueDeclare("none", passive=True),
        m.QueueBind("q", "x", "k"),
        m.QueueBind("q", "none", "k"),
        m.QueueBind("none", "x", "k"),
        m.QueueUnbind("q", "x", "k"),
        m.QueuePurge("q"),
        m.BasicConsume("q", "c"),
        m.BasicConsume("none", "c"),
        m.BasicGet("q", no_ack=True),
        m.ExchangeDeclare("x", "direct"),
        m.ExchangeDeclare("x", "direct", passive=True),
        m.ExchangeDeclare("none", "direct", passive=True),
        m.ExchangeDeclare("new", "direct"),
        m.ExchangeDeclare("new", "direct", arguments={"alternate-exchange": "x"}),
        m.ExchangeBind("x", "y", "k"),
        m.ExchangeUnbind("x", "y", "k"),
        m.QueueDelete("none"),
        m.ExchangeDelete("none"),
        m.ExchangeDelete("y"),
        m.QueueDelete("q"),
    ]
    for method in methods:
        client.do(method, first=0.6)
    for exchange in ("x", "", "none", "amq.topic"):
        client.publish("a", "q", exchange)
        client.hear(first=0.4)


def _prepare(talk: Talk) -> None:
    client = talk.client("owner")
    client.queue()
    client.exchange("x")
    client.exchange("y")


@conversation()
def nothing_allowed(talk: Talk) -> None:
    _prepare(talk)
    _try_all(talk.client(user=talk.user("none", "^$", "^$", "^$")))


@conversation()
def configure_allowed(talk: Talk) -> None:
    _prepare(talk)
    _try_all(talk.client(user=talk.user("conf", ".*", "^$", "^$")))


@conversation()
def write_allowed(talk: Talk) -> None:
    _prepare(talk)
    _try_all(talk.client(user=talk.user("write", "^$", ".*", "^$")))


@conversation()
def read_allowed(talk: Talk) -> None:
    _prepare(talk)
    _try_all(talk.client(user=talk.user("read", "^$", "^$", ".*")))


@conversation()
def half_a_name_allowed(talk: Talk) -> None:
    user = talk.user("part", "^mine", "mine$|amq\\.default", "in")
    client = talk.client(user=user)
    client.queue("mine")
    client.queue("not.mine")
    client.exchange("mine")
    client.publish("a", "mine", "")
    client.publish("a", "mine", "mine")
    client.publish("a", "mine", "amq.direct")
    client.hear()
    client.bind("mine", "mine", "k")
    client.get("mine")


@conversation()
def keys_allowed(talk: Talk) -> None:
    _prepare(talk)
    user = talk.user("keys", ".*", ".*", ".*")
    talk.topic_permission(user, "amq.topic", "^a", "^b")
    client = talk.client(user=user)
    client.publish("a", "a.x", "amq.topic")
    client.hear(first=0.3)
    client.publish("a", "b.x", "amq.topic")
    client.hear(first=0.3)
    client.bind("q", "amq.topic", "b.x")
    client.bind("q", "amq.topic", "a.x")
    client.publish("a", "b.x", "amq.direct")
    client.hear(first=0.3)


@conversation("permissions act at once; RabbitMQ's channels remember for a while what they were allowed")
def permissions_taken_away(talk: Talk) -> None:
    _prepare(talk)
    user = talk.user("once", ".*", ".*", ".*")
    client = talk.client(user=user)
    client.publish("a", "q")
    client.get()
    talk.ask("PUT", f"/api/permissions/{talk.vhost}/{user}", {"configure": "^$", "write": "^$", "read": "^$"})
    talk.sleep(0.3)
    client.get()
    client.queue("new")


@conversation()
def impersonators(talk: Talk) -> None:
    client = talk.client(user=talk.user("imp", ".*", ".*", ".*", tags="impersonator"))
    client.queue()
    client.publish("a", user_id="somebody")
    client.hear(first=0.3)
    client.get()
