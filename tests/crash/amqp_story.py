"""What the client of a crash test does: it publishes, consumes, acknowledges and declares, by its seed.

In come a link to a broker and the model; out goes traffic until the broker dies or the story is told. Each thing that
is asked for is told to the model at once, and made sure when an answer comes that waited for the disk.
"""

import random
from collections.abc import Callable, Mapping

from interlog.faces.amqp import methods as m
from interlog.faces.amqp.properties import Properties
from tests.crash.amqp_client import Client, Heard
from tests.crash.amqp_model import GRAVES, QUEUES, SPREAD, Copy, Group, Model
from tests.crash.bodies import body_of, number_of
from tests.crash.brokers import Link
from tests.crash.model import Wrong

CONFIRMS, TX, CONSUMERS, ENTITIES, LOOK = 1, 2, 3, 4, 5
STREAM_TAG = "log"


class Story:
    """One life of a client."""

    def __init__(self, link: Link, model: Model, rng: random.Random, first: int, largest: int) -> None:
        self.next = first  # the next message's number
        self._model = model
        self._rng = rng
        self._largest = largest
        self._client = Client(link, self._take)
        self._asked: list[Callable[[], None]] = []  # makes sure what was asked for, in the order it was asked
        self._base = 0  # how many were made sure and forgotten
        self._marks: dict[int, int] = {}  # by number of a lasting publish: what is sure once it is confirmed
        self._published = 0
        self._delivered: dict[int, tuple[Copy, str]] = {}  # by delivery tag: and the queue it came from
        self._looked: list[bytes] = []  # what a stream was seen to hold

    # -- beginning

    def begin(self) -> None:
        self._client.open(CONFIRMS, TX, CONSUMERS, ENTITIES)

    def declare(self) -> None:
        """What lasts, and one queue that does not. The same again in every life."""
        call = self._client.call
        for name, kind in (("dead", "fanout"), ("spread", "fanout")):
            call(ENTITIES, m.ExchangeDeclare(name, kind, durable=True), m.ExchangeDeclareOk)
        for name, arguments in {GRAVES: {}, **{name: kind.arguments for name, kind in QUEUES.items()}}.items():
            call(ENTITIES, m.QueueDeclare(name, durable=True, arguments=dict(arguments)), m.QueueDeclareOk)
        call(ENTITIES, m.QueueBind(GRAVES, "dead", ""), m.QueueBindOk)
        for name in SPREAD:
            call(ENTITIES, m.QueueBind(name, "spread", ""), m.QueueBindOk)

    # -- looking

    def look(self) -> dict[str, list[tuple[int, str]]]:
        """What is in the queues, in order; afterwards it is all there as before."""
        found = {name: self._look_at(name) for name in (*QUEUES, GRAVES) if name != STREAM_TAG}
        found[STREAM_TAG] = self._look_at_stream()
        return found

    def _look_at(self, queue: str) -> list[tuple[int, str]]:
        client = self._client
        client.call(LOOK, m.ChannelOpen(), m.ChannelOpenOk)
        found = []
        while True:
            heard = client.call(LOOK, m.BasicGet(queue), m.BasicGetOk, m.BasicGetEmpty, m.ChannelClose)
            if isinstance(heard.method, m.ChannelClose):
                raise Wrong(f"{queue} is gone: {heard.method}")
            if isinstance(heard.method, m.BasicGetEmpty):
                break
            found.append((number_of(heard.body, self._largest), heard.origin() if queue == GRAVES else queue))
        client.call(LOOK, m.ChannelClose(200, ""), m.ChannelCloseOk)
        return found

    def _look_at_stream(self) -> list[tuple[int, str]]:
        client = self._client
        client.call(LOOK, m.ChannelOpen(), m.ChannelOpenOk)
        answer = client.call(LOOK, m.QueueDeclare(STREAM_TAG, passive=True), m.QueueDeclareOk).method
        depth = answer.values()["message_count"]
        client.call(LOOK, m.BasicQos(0, 1_000), m.BasicQosOk)
        self._looked.clear()
        client.call(LOOK, m.BasicConsume(STREAM_TAG, "look", arguments={"x-stream-offset": "first"}), m.BasicConsumeOk)
        while len(self._looked) < depth:
            client.turn()
        found = [(number_of(body, self._largest), STREAM_TAG) for body in self._looked]
        client.call(LOOK, m.ChannelClose(200, ""), m.ChannelCloseOk)
        return found

    def look_at_entities(self) -> None:
        """Declared for sure: there. Deleted for sure: not there. And what does not last is gone."""
        for name, there in {"passing": False, **self._model.extra}.items():
            found = self._exists(name)
            if there is not None and found != there:
                raise Wrong(f"the queue {name} {'is gone' if there else 'is there again'}")
            if name != "passing":
                self._model.extra[name] = found

    def _exists(self, name: str) -> bool:
        client = self._client
        client.call(LOOK, m.ChannelOpen(), m.ChannelOpenOk)
        heard = client.call(LOOK, m.QueueDeclare(name, passive=True), m.QueueDeclareOk, m.ChannelClose)
        if isinstance(heard.method, m.ChannelClose):
            client.send(LOOK, m.ChannelCloseOk())
            return False
        client.call(LOOK, m.ChannelClose(200, ""), m.ChannelCloseOk)
        return True

    # -- working

    def work(self, steps: int) -> None:
        client, rng = self._client, self._rng
        client.call(ENTITIES, m.QueueDeclare("passing"), m.QueueDeclareOk)
        client.call(CONFIRMS, m.ConfirmSelect(), m.ConfirmSelectOk)
        client.call(TX, m.TxSelect(), m.TxSelectOk)
        client.call(CONSUMERS, m.BasicQos(0, rng.choice((1, 5, 20))), m.BasicQosOk)
        for queue in rng.sample([name for name in (*QUEUES, GRAVES) if name != STREAM_TAG], 3):
            client.call(CONSUMERS, m.BasicConsume(queue, queue), m.BasicConsumeOk)
        deeds: Mapping[Callable[[], None], int] = {
            self._publish: 12,
            self._spread: 3,
            self._settle: 8,
            self._transaction: 2,
            self._extra: 1,
            self._pass: 1,
            client.turn: 6,
        }
        for deed in rng.choices(list(deeds), list(deeds.values()), k=steps):
            deed()
        for _ in range(rng.randint(0, 20)):
            client.turn()

    def end(self) -> None:
        self._client.close()

    def _publish(self) -> None:
        """Some messages in a row, so that they share ticks."""
        for _ in range(self._rng.choice((1, 1, 2, 8))):
            queue = self._rng.choice(list(QUEUES))
            transient = queue == "classic" and self._rng.random() < 0.3
            number = self._send(CONFIRMS, "", queue, (queue,), None, transient)
            self._published += 1
            if not transient:
                self._marks[self._published] = self._base + len(self._asked)
            assert number

    def _spread(self) -> None:
        self._send(CONFIRMS, "spread", "", SPREAD, None, False)
        self._published += 1
        self._marks[self._published] = self._base + len(self._asked)

    def _pass(self) -> None:
        """To the queue that does not last: nobody waits for the disk, and nobody will see it again."""
        self._client.publish(CONFIRMS, m.BasicPublish("", "passing"), Properties(delivery_mode=2), b"0 ")
        self._published += 1

    def _send(
        self, channel: int, exchange: str, key: str, queues: tuple[str, ...], group: Group | None, transient: bool
    ) -> int:
        number, self.next = self.next, self.next + 1
        priority = self._rng.randint(0, 3) if key == "ranked" else 0
        for queue in queues:
            copy = Copy(number, queue, number, priority, transient, group)
            self._model.add(copy)
            if group is not None:
                group.brought.append(copy)
            self._asked.append(lambda copy=copy: setattr(copy, "arrived", True))  # type: ignore[misc]
        mode = 1 if transient else 2
        properties = Properties(delivery_mode=mode, **({"priority": priority} if priority else {}))
        self._client.publish(channel, m.BasicPublish(exchange, key), properties, body_of(number, self._largest))
        return number

    def _settle(self) -> None:
        """Acknowledge or reject something that was delivered."""
        if not self._delivered:
            self._client.turn()
            return
        rng, client = self._rng, self._client
        tag = rng.choice(list(self._delivered))
        multiple = rng.random() < 0.3
        tags = [one for one in self._delivered if one <= tag] if multiple else [tag]
        copies = [self._delivered.pop(one) for one in tags]
        what = rng.choice(("ack", "ack", "ack", "requeue", "bury"))
        if what == "ack":
            client.send(CONSUMERS, m.BasicAck(tag, multiple))
            for copy, _ in copies:
                self._remove(copy)
        elif what == "requeue":
            client.send(CONSUMERS, m.BasicNack(tag, multiple, True))
        else:
            client.send(CONSUMERS, m.BasicNack(tag, multiple, False))
            for copy, queue in copies:
                if queue != GRAVES and QUEUES[queue].buries:
                    copy.burying = True
                    self._asked.append(lambda copy=copy: setattr(copy, "buried", True))  # type: ignore[misc]
                else:
                    self._remove(copy)

    def _remove(self, copy: Copy) -> None:
        copy.removing = True
        self._asked.append(lambda: setattr(copy, "removed", True))

    def _transaction(self) -> None:
        """Moves of messages: taken from queues, brought to others, all or nothing."""
        client, rng = self._client, self._rng
        group = Group()
        if rng.random() < 0.3:
            client.publish(TX, m.BasicPublish("", "classic"), Properties(delivery_mode=2), b"0 never")
            client.call(TX, m.TxRollback(), m.TxRollbackOk)
        for _ in range(rng.randint(0, 3)):
            queue = rng.choice(("classic", "quorum", "ranked", GRAVES))
            heard = client.call(TX, m.BasicGet(queue), m.BasicGetOk, m.BasicGetEmpty)
            if isinstance(heard.method, m.BasicGetOk):
                copy = self._copy(heard, queue)
                client.send(TX, m.BasicAck(heard.method.delivery_tag, False))
                group.took.append(copy)
        for _ in range(rng.randint(1, 4)):
            queue = rng.choice(("classic", "quorum", "ranked", "log"))
            self._send(TX, "", queue, (queue,), group, False)
        self._model.groups.append(group)
        for copy in group.took:
            self._remove(copy)
        client.send(TX, m.TxCommit())
        mark = self._base + len(self._asked)
        client.wait(TX, m.TxCommitOk)
        self._sure(mark)

    def _extra(self) -> None:
        """Durable queues that come and go."""
        model, rng = self._model, self._rng
        name = f"extra-{rng.randint(1, 3)}"
        there = model.extra.get(name)
        model.extra[name] = None
        mark = self._base + len(self._asked)
        if there:
            self._client.call(ENTITIES, m.QueueDelete(name), m.QueueDeleteOk)
        else:
            self._client.call(ENTITIES, m.QueueDeclare(name, durable=True), m.QueueDeclareOk)
        self._sure(mark)
        model.extra[name] = not there

    # -- what comes in

    def _take(self, heard: Heard) -> None:
        method = heard.method
        if isinstance(method, m.BasicDeliver):
            if heard.channel == LOOK:
                self._looked.append(heard.body)
                return
            queue = method.consumer_tag
            self._delivered[method.delivery_tag] = (self._copy(heard, queue), queue)
        elif isinstance(method, m.BasicAck):
            self._confirmed(method.delivery_tag)
        elif isinstance(method, m.BasicNack):
            raise Wrong(f"message {method.delivery_tag} was refused")
        elif isinstance(method, m.ChannelClose):
            raise Wrong(f"channel {heard.channel} was closed: {method}")
        elif not isinstance(method, m.ConnectionBlocked | m.ConnectionUnblocked):
            raise Wrong(f"on channel {heard.channel} came {method}, which nobody waited for")

    def _copy(self, heard: Heard, queue: str) -> Copy:
        number = number_of(heard.body, self._largest)
        copy = self._model.find(number, heard.origin() if queue == GRAVES else queue)
        if copy.removing:
            raise Wrong(f"{copy} was acknowledged, and is delivered again")
        if queue != GRAVES and copy.burying:
            raise Wrong(f"{copy} was rejected, and is delivered again")
        return copy

    def _confirmed(self, number: int) -> None:
        marks = self._marks
        last = max((one for one in marks if one <= number), default=0)
        if not last:
            return
        self._sure(marks[last])
        for one in [one for one in marks if one <= number]:
            del marks[one]

    def _sure(self, mark: int) -> None:
        """Everything that was asked for before the mark has happened, and lasts."""
        count = mark - self._base
        if count <= 0:
            return
        for deed in self._asked[:count]:
            deed()
        del self._asked[:count]
        self._base = mark
