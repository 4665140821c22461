"""What the clients of a crash test do: producers of all kinds, members of groups, and who looks after topics.

In comes a broker in each of its lives; out goes traffic until it dies or the story is told. Each thing that is asked
for is told to the model at once, and made sure when it is answered.
"""

import random
from collections.abc import Callable, Mapping

from tests.crash.brokers import Broker, Gone, InProcess
from tests.crash.kafka_client import Client
from tests.crash.kafka_members import ALONE, BALANCED, CLASSIC, BalancedMember, Classic, commit_request, error_of
from tests.crash.kafka_model import INPUT, MOVER, OUTPUT, PLACES, TOPICS, Log, Model, Place, Reader
from tests.crash.kafka_producers import IdempotentProducer, PlainProducer
from tests.crash.kafka_reading import read_committed, read_cursors, read_log
from tests.crash.kafka_sharers import Sharers
from tests.crash.kafka_things import Things
from tests.crash.kafka_tools import Tools
from tests.crash.kafka_transactions import NEW, OLD, TransactionalProducer
from tests.crash.model import Wrong
from tests.faults import PowerCut

CONNECTIONS = 11


class Mover(TransactionalProducer):
    """Each record of INPUT goes to OUTPUT exactly once: it is written, and the cursor set, in one transaction."""

    def connect(self, client: Client) -> None:
        self.client = client
        # What it was in the middle of is done again, from the cursor on.
        self.init()

    def step(self) -> None:
        tools, rng = self.tools, self.tools.rng
        if self._timed_out():
            return
        if self.transaction is not None:
            self.client.flush()  # it was held back for want of room, and is done again
            self.held_back = False
            self.init()
            return
        place = (INPUT, rng.randrange(TOPICS[INPUT]))
        cursors, unstable = read_cursors(self.client, [MOVER], stable=True)
        if unstable:
            raise Wrong("the only mover has nothing open, and its cursor is said to be unstable")
        begin, _ = cursors.get((MOVER, place), (0, ""))
        counts, after, _ = read_committed(self.client, place, begin, tools.largest, 11)
        if after == begin:
            return
        upto = after
        if len(counts) > 8:
            counts, upto = counts[:8], counts[8].offset
        for one in counts:
            numbers = tools.numbers(1)
            tools.model.sources[numbers[0]] = (place, one.offset)
            self.write((OUTPUT, one.offset % TOPICS[OUTPUT]), numbers)
        if not self.errors:
            self.set_cursor(MOVER, place, upto)
        self.finish(rng.random() < 0.8)


class Story:
    """All lives of the clients."""

    def __init__(self, broker: Broker, rng: random.Random, *, disk_fails: bool, disk_fills: bool) -> None:
        self.model = Model()
        self._broker = broker
        self._rng = rng
        self._tools = tools = Tools(
            self.model, rng, broker.largest, lambda: broker.now_ms, disk_fails=disk_fails, disk_fills=disk_fills
        )
        self._clients: list[Client] = []
        self._plain = PlainProducer(tools)
        self._numbered = IdempotentProducer(tools)
        self._old = TransactionalProducer(tools, "old", OLD)
        self._new = TransactionalProducer(tools, "new", NEW)
        self._mover = Mover(tools, "mover", rng.choice((OLD, NEW)))
        self._classic = Classic(tools)
        self._balanced = BalancedMember(tools)
        self._sharers = Sharers(tools)
        self._things = Things(tools)
        self._alone = 0  # the last cursor of the group without members

    @property
    def records(self) -> int:
        return self._tools.next - 1

    def begin(self, *, power: bool) -> None:
        """The broker was started: look at what it has. `power`: why it was not running."""
        self._clients = [Client(self._broker.connect()) for _ in range(CONNECTIONS)]
        admin = self._clients[0]
        self._things.connect(admin)
        self._things.make_topics()
        self._things.look()
        logs, cursors = self._look(admin)
        self.model.check(logs, cursors, power=power)
        self.model.settle(logs, cursors)

    def _look(self, client: Client) -> tuple[dict[Place, Log], dict[Reader, tuple[int, str]]]:
        logs = {place: read_log(client, place, self._tools.largest, self._rng) for place in PLACES}
        groups = [ALONE, CLASSIC, BALANCED, MOVER, f"{self._old.name}-group", f"{self._new.name}-group"]
        return logs, read_cursors(client, groups)[0]

    def connect(self) -> None:
        """Everybody goes on, or begins."""
        _, plain, numbered, old, new, mover, one, other, balanced, *sharers = self._clients
        self._plain.connect(plain)
        self._numbered.connect(numbered)
        self._classic.connect(one, other)
        self._balanced.connect(balanced)
        self._sharers.connect(*sharers)
        self._old.connect(old)
        self._new.connect(new)
        self._mover.connect(mover)

    def work(self, steps: int) -> None:
        deeds: Mapping[Callable[[], None], int] = {
            self._plain.step: 10,
            self._numbered.step: 10,
            self._old.step: 6,
            self._new.step: 6,
            self._mover.step: 3,
            self._set_cursor: 4,
            self._classic.step: 3,
            self._balanced.step: 3,
            self._sharers.step: 4,
            self._things.step: 3,
            self._look_in_passing: 1,
            self.turn: 6,
        }
        for deed in self._rng.choices(list(deeds), list(deeds.values()), k=steps):
            deed()
        for _ in range(self._rng.randint(0, 10)):
            self.turn()

    def turn(self) -> None:
        for client in self._clients:
            client.turn()

    def last_words(self) -> None:
        """The broker is dead: what it had answered counts."""
        for client in self._clients:
            try:
                client.last_words()
            except (Gone, PowerCut):
                pass

    def end(self) -> None:
        """All answers are in; then all of it is as it must be, once more."""
        for client in self._clients:
            client.flush()
        logs, cursors = self._look(self._clients[0])
        self.model.check(logs, cursors, power=False)
        self._sharers.end(logs)
        self._things.look()

    # -- deeds

    def _set_cursor(self) -> None:
        """Of a group without members; the answers are not waited for."""
        self._alone += self._rng.randint(1, 9)
        place = self._rng.choice(PLACES)
        claim = self.model.claim((ALONE, place), self._alone)

        def answered(answer: object) -> None:
            self._tools.check(error_of(answer), "a cursor")
            claim.lasts = True

        self._clients[0].send(commit_request(ALONE, place, claim), self._rng.choice((2, 5, 8, 9)), answered)

    def _look_in_passing(self) -> None:
        place = self._rng.choice(PLACES)
        for client in self._clients:
            client.flush()
        self.model.check_log(place, read_log(self._clients[0], place, self._tools.largest, self._rng))

    def fill_up(self, broker: InProcess) -> None:
        """The disk is full for a while: producers are told to come again, and afterwards nothing is missing."""
        broker.fill()
        for _ in range(60):
            self._rng.choice((self._plain.step, self._plain.step, self._numbered.step, self._set_cursor, self.turn))()
        broker.make_room()
        for client in self._clients:
            client.flush()
        self._numbered.go_on(9)
        for client in self._clients:
            client.flush()
