"""Members of a share group in a crash test: they take records together, and say what became of them.

In come connections in each life; out go heartbeats, fetches and acknowledgements. What was acknowledged, and answered,
is never delivered again; what was not is delivered in the end.
"""

from collections.abc import Mapping
from typing import Any

from interlog.faces.kafka.schema import incremental_alter_configs as configs
from interlog.faces.kafka.schema import share_acknowledge as sa
from interlog.faces.kafka.schema import share_fetch as sf
from interlog.faces.kafka.schema.metadata import MetadataRequest, MetadataRequestTopic
from interlog.faces.kafka.schema.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.crash.kafka_client import Client
from tests.crash.kafka_model import TOPICS, Log, Place, Stored
from tests.crash.kafka_tools import Tools
from tests.crash.model import Wrong

GROUP, TOPIC = "sharers", "log"
_OF_GROUP = 32
_ACCEPT, _RELEASE, _REJECT = 1, 2, 3
_FINAL = -1
_SETTINGS = {
    "share.auto.offset.reset": "earliest",
    "share.delivery.count.limit": "100",
    "share.record.lock.duration.ms": "3600000",  # nobody loses what it holds but by a death
    "share.session.timeout.ms": "1800000",
}


Verdicts = Mapping[int, Mapping[int, int]]  # by partition and offset


class Said:
    """What the members said of a partition's records."""

    def __init__(self) -> None:
        self.asked: set[int] = set()  # not to be delivered again
        self.over: set[int] = set()  # and that is sure


class Sharer:
    """One member."""

    def __init__(self, tools: Tools, said: Mapping[int, Said]) -> None:
        self._tools = tools
        self._said = said
        self._client: Client
        self._topic = b""
        self._name = ""
        self._epoch = 0  # of its session; 0: there is none
        self._held: dict[int, set[int]] = {}

    def connect(self, client: Client) -> None:
        """After a restart nobody holds anything."""
        self._client = client
        changes = [configs.AlterableConfig(name, 0, text) for name, text in _SETTINGS.items()]
        request = configs.IncrementalAlterConfigsRequest([configs.AlterConfigsResource(_OF_GROUP, GROUP, changes)])
        self._tools.check(client.call(request, 1).responses[0].error_code, "settings of a group")
        (found,) = client.call(MetadataRequest([MetadataRequestTopic(name=TOPIC)]), 12).topics
        self._topic = found.topic_id
        self.join()

    def join(self) -> None:
        self._name, self._epoch = f"sharer-{self._tools.rng.randrange(1 << 30)}", 0
        self._held = {index: set() for index in self._said}
        self._beat(0, subscribed_topic_names=[TOPIC])

    def leave(self) -> None:
        """All that it holds goes back."""
        if self._epoch:
            self._epoch = _FINAL
            self._acknowledge({})
        self._beat(-1)

    def _beat(self, epoch: int, **more: Any) -> None:
        answer = self._client.call(ShareGroupHeartbeatRequest(GROUP, self._name, epoch, **more), 1)
        self._tools.check(answer.error_code, "a heartbeat of a share group")

    def step(self) -> None:
        rng = self._tools.rng
        if rng.random() < 0.1:
            self.leave()
            self.join()
        elif not self._epoch:
            self.fetch({})
        elif rng.random() < 0.5:
            self.fetch(self._verdicts())
        else:
            self._acknowledge(self._verdicts())

    def _verdicts(self) -> Verdicts:
        rng = self._tools.rng
        found = {}
        for index, held in self._held.items():
            offsets = [offset for offset in sorted(held) if rng.random() < 0.6]
            if offsets:
                found[index] = {offset: rng.choice((_ACCEPT, _ACCEPT, _RELEASE, _REJECT)) for offset in offsets}
        return found

    def fetch(self, verdicts: Verdicts) -> set[tuple[int, int]]:
        """The partitions and offsets of what it was given."""
        wanted = [
            sf.FetchPartition(index, [sf.AcknowledgementBatch(one, one, [what]) for one, what in said])
            for index in self._said
            for said in [verdicts.get(index, {}).items()]
        ]
        topics = [sf.FetchTopic(self._topic, wanted)]
        self._ask(verdicts)
        request = sf.ShareFetchRequest(GROUP, self._name, self._epoch, max_records=20, topics=topics)
        partitions = self._call(request)
        given: set[tuple[int, int]] = set()
        for one in partitions:
            self._tools.check(one.error_code, "a fetch of a share group")
            self._answered(one.partition_index, one.acknowledge_error_code, verdicts)
            for run in one.acquired_records:
                offsets = range(run.first_offset, run.last_offset + 1)
                self._given(one.partition_index, offsets)
                given.update((one.partition_index, offset) for offset in offsets)
        if not verdicts.keys() <= {one.partition_index for one in partitions}:
            raise Wrong("an acknowledgement was not answered")
        return given

    def _acknowledge(self, verdicts: Verdicts) -> None:
        partitions = [
            sa.AcknowledgePartition(index, [sa.AcknowledgementBatch(one, one, [what]) for one, what in said.items()])
            for index, said in verdicts.items()
        ]
        topics = [sa.AcknowledgeTopic(self._topic, partitions)] if partitions else []
        self._ask(verdicts)
        for one in self._call(sa.ShareAcknowledgeRequest(GROUP, self._name, self._epoch, topics=topics)):
            self._answered(one.partition_index, one.error_code, verdicts)

    def _call(self, request: sf.ShareFetchRequest | sa.ShareAcknowledgeRequest) -> list[Any]:
        """What was answered of each partition."""
        answer = self._client.call(request, 2)
        self._tools.check(answer.error_code, "a request of a share group")
        self._epoch += 1
        return [one for topic in answer.responses for one in topic.partitions]

    def _ask(self, verdicts: Verdicts) -> None:
        for index, said in verdicts.items():
            self._held[index].difference_update(said)
            self._said[index].asked.update(offset for offset, what in said.items() if what != _RELEASE)

    def _answered(self, index: int, code: int, verdicts: Verdicts) -> None:
        self._tools.check(code, "an acknowledgement")
        self._said[index].over.update(offset for offset, what in verdicts.get(index, {}).items() if what != _RELEASE)

    def _given(self, index: int, offsets: range) -> None:
        again = self._said[index].over.intersection(offsets)
        if again:
            raise Wrong(f"acknowledged by a share group, and delivered again: {sorted(again)} of {(TOPIC, index)}")
        self._held[index].update(offsets)


class Sharers:
    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._said = {index: Said() for index in range(TOPICS[TOPIC])}
        self._members = [Sharer(tools, self._said) for _ in range(2)]

    def connect(self, *clients: Client) -> None:
        for member, client in zip(self._members, clients, strict=True):
            member.connect(client)

    def step(self) -> None:
        self._tools.rng.choice(self._members).step()

    def end(self, logs: Mapping[Place, Log]) -> None:
        """All that nobody is done with is delivered to the last who is there."""
        for member in self._members:
            member.leave()
        last = self._members[0]
        last.join()
        given: set[tuple[int, int]] = set()
        while found := last.fetch({}):
            given |= found
        for index, said in self._said.items():
            stored = {one.offset for one in logs[TOPIC, index].stored if isinstance(one, Stored)}
            missing = [offset for offset in sorted(stored - said.asked) if (index, offset) not in given]
            if missing:
                raise Wrong(f"never delivered to a share group: {missing} of {(TOPIC, index)}")
