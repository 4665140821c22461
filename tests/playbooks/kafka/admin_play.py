"""What the playbooks of topics and their configs say again and again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from interlog.faces.kafka.schema import create_topics as ct
from interlog.faces.kafka.schema import fetch, list_offsets, produce
from interlog.faces.kafka.schema.sasl_authenticate import SaslAuthenticateRequest
from interlog.faces.kafka.schema.sasl_handshake import SaslHandshakeRequest
from interlog.journal import batch as batches
from interlog.journal.record import Record
from tests.playbooks.kafka.play import Client, Play, playing

EARLIEST, LATEST = -2, -1


def create(
    client: Client, name: str = "t", partitions: int = 1, version: int = 7, configs: Any = None, **more: Any
) -> Any:
    """Ask for one topic; what was answered of it."""
    validate_only = more.pop("validate_only", False)
    given = [ct.CreatableTopicConfig(*one) for one in (configs or {}).items()]
    topic = ct.CreatableTopic(name, partitions, more.pop("replication_factor", 1), configs=given, **more)
    (result,) = client.ask(ct.CreateTopicsRequest([topic], 1_000, validate_only), version).topics
    assert result.name == name
    return result


def send(client: Client, records: list[Record], topic: str = "t", index: int = 0, **more: Any) -> Any:
    """Produce one batch; what was answered of it."""
    answer = client.ask(one_batch(records, topic, index, **more), 11)
    return answer.responses[0].partition_responses[0]


def one_batch(records: list[Record], topic: str = "t", index: int = 0, **more: Any) -> produce.ProduceRequest:
    batch = batches.encode(records, base_offset=0, leader_epoch=-1, **more)
    data = produce.TopicProduceData(topic, partition_data=[produce.PartitionProduceData(index, batch)])
    return produce.ProduceRequest(None, -1, 1_000, [data])


def fetched(client: Client, topic: str = "t", index: int = 0, offset: int = 0) -> Any:
    """What was answered of one partition."""
    partition = fetch.FetchPartition(index, fetch_offset=offset, partition_max_bytes=1 << 26)
    answer = client.ask(fetch.FetchRequest(topics=[fetch.FetchTopic(topic, partitions=[partition])]), 11)
    return answer.responses[0].partitions[0]


def headers(client: Client, offset: int = 0) -> list[batches.BatchHeader]:
    return [header for _, header in batches.batches(bytes(fetched(client, offset=offset).records or b""))]


def read(client: Client, offset: int = 0, topic: str = "t") -> list[tuple[int, Record]]:
    """All there is from an offset on."""
    found: list[tuple[int, Record]] = []
    while True:
        data = bytes(fetched(client, topic, offset=offset).records or b"")
        if not data:
            return found
        for at, header in batches.batches(data):
            whole = data[at : at + header.length]
            found += [one for one in batches.decode(whole) if one[0] >= offset]
            offset = header.base_offset + header.last_offset_delta + 1


def offset(client: Client, which: int, topic: str = "t", index: int = 0) -> int:
    """The earliest or latest offset."""
    asked = list_offsets.ListOffsetsTopic(topic, [list_offsets.ListOffsetsPartition(index, timestamp=which)])
    answer = client.ask(list_offsets.ListOffsetsRequest(topics=[asked]), 5)
    found: int = answer.topics[0].partitions[0].offset
    return found


def closed(data: Path, **permissions: tuple[str, str, str]) -> Iterator[Play]:
    """A broker where everybody logs in, with users and what they may configure, write and read."""
    for play in playing(data, authentication=True):
        for user, patterns in permissions.items():
            play.core.access.add_user(user, "secret")
            play.core.access.set_permissions("/", user, *patterns)
        play.turn()
        yield play


def login(play: Play, user: str, password: str = "secret") -> Client:
    client = play.connect()
    client.ask(SaslHandshakeRequest("PLAIN"), 1)
    assert client.ask(SaslAuthenticateRequest(f"\0{user}\0{password}".encode()), 2).error_code == 0
    return client
