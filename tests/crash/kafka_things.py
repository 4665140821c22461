"""What else lasts and changes in a crash test: topics that come and go, their configs, where a log starts, rules, and
passwords.

In comes a connection in each life; out go requests, each a change that is told to the model before it is asked for
and after it is answered. `look` compares what is there with what may be.
"""

from interlog.faces.kafka.schema.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from interlog.faces.kafka.schema.create_acls import AclCreation, CreateAclsRequest
from interlog.faces.kafka.schema.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from interlog.faces.kafka.schema.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from interlog.faces.kafka.schema.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from interlog.faces.kafka.schema.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from interlog.faces.kafka.schema.delete_topics import DeleteTopicsRequest, DeleteTopicState
from interlog.faces.kafka.schema.describe_acls import DescribeAclsRequest
from interlog.faces.kafka.schema.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from interlog.faces.kafka.schema.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from interlog.faces.kafka.schema.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from interlog.faces.kafka.schema.metadata import MetadataRequest
from tests.crash.kafka_client import Client
from tests.crash.kafka_model import TOPICS, TRIMMED
from tests.crash.kafka_reading import EARLIEST, LATEST, offset
from tests.crash.kafka_tools import Tools
from tests.crash.model import Wrong

_TOPIC = 2  # kinds of resources
_ANY, _LITERAL = 1, 3
_READ, _ALLOW = 3, 3
_RETENTION = "retention.ms"
_EXTRA = ("extra-1", "extra-2", "extra-3")
_RULES = ("ann", "bob")
_USERS = ("carl", "dora")
_START = ("start of", TRIMMED)


class Things:
    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._client: Client
        self._counted = 0
        for user in _RULES:
            tools.model.did(("rule", user), False)
        tools.model.did(_START, 0)

    def connect(self, client: Client) -> None:
        self._client = client

    def make_topics(self) -> None:
        """Those that are there for good. The same again in each life until it is known that they are."""
        asked = [CreatableTopic(name, count, 1) for name, count in TOPICS.items()]
        for result in self._client.call(CreateTopicsRequest(asked, 1_000), 7).topics:
            if result.error_code != 36:  # it is there already
                self._tools.check(result.error_code, f"the topic {result.name}")

    def step(self) -> None:
        rng = self._tools.rng
        rng.choices((self._topic, self._rule, self._password, self._trim), (5, 2, 1, 3))[0]()

    # -- changes

    def _topic(self) -> None:
        """An extra one: (its partitions, its retention), or None."""
        tools, model, rng = self._tools, self._tools.model, self._tools.rng
        name = rng.choice(_EXTRA)
        thing = ("topic", name)
        now = model.known(thing)
        self._counted += 1
        retention_ms = str(1_000_000_000 + self._counted)
        then: tuple[int, str] | None
        if now is None:
            then = (rng.randint(1, 3), retention_ms)
            model.may(thing, then)
            configs = [CreatableTopicConfig(_RETENTION, retention_ms)]
            topics = [CreatableTopic(name, then[0], 1, configs=configs)]
            code = self._client.call(CreateTopicsRequest(topics, 1_000), 7).topics[0].error_code
        elif rng.random() < 0.4:
            then = None
            model.may(thing, then)
            code = self._client.call(DeleteTopicsRequest([DeleteTopicState(name)]), 6).responses[0].error_code
        elif rng.random() < 0.5:
            then = (now[0], retention_ms)
            model.may(thing, then)
            change = AlterConfigsResource(_TOPIC, name, [AlterableConfig(_RETENTION, 0, retention_ms)])
            code = self._client.call(IncrementalAlterConfigsRequest([change]), 1).responses[0].error_code
        else:
            then = (now[0] + 1, now[1])
            model.may(thing, then)
            grown = CreatePartitionsTopic(name, then[0], None)
            code = self._client.call(CreatePartitionsRequest([grown], 1_000), 3).results[0].error_code
        tools.check(code, f"{name}, from {now} to {then}")
        model.did(thing, then)

    def _rule(self) -> None:
        tools, model = self._tools, self._tools.model
        user = tools.rng.choice(_RULES)
        thing = ("rule", user)
        then = not model.known(thing)
        model.may(thing, then)
        if then:
            rule = AclCreation(_TOPIC, "log", _LITERAL, f"User:{user}", "*", _READ, _ALLOW)
            code = self._client.call(CreateAclsRequest([rule]), 3).results[0].error_code
        else:
            filter = DeleteAclsFilter(_ANY, None, _ANY, f"User:{user}", None, _ANY, _ANY)
            code = self._client.call(DeleteAclsRequest([filter]), 3).filter_results[0].error_code
        tools.check(code, f"a rule for {user}")
        model.did(thing, then)

    def _password(self) -> None:
        """Known again by how often it was hashed."""
        tools, model = self._tools, self._tools.model
        user = tools.rng.choice(_USERS)
        self._counted += 1
        iterations = 4_096 + self._counted
        model.may(("password", user), iterations)
        change = ScramCredentialUpsertion(user, 1, iterations, b"0123456789abcdef", bytes(32))
        answer = self._client.call(AlterUserScramCredentialsRequest([], [change]), 0)
        tools.check(answer.results[0].error_code, f"a password of {user}")
        model.did(("password", user), iterations)

    def _trim(self) -> None:
        tools, model, client = self._tools, self._tools.model, self._client
        place = (TRIMMED, 0)
        start, end = offset(client, place, EARLIEST), offset(client, place, LATEST)
        upto = tools.rng.randint(start, end)
        model.may(_START, upto)
        topics = [DeleteRecordsTopic(TRIMMED, [DeleteRecordsPartition(0, upto)])]
        found = client.call(DeleteRecordsRequest(topics, 1_000), 2).topics[0].partitions[0]
        tools.check(found.error_code, "deleting records")
        if found.low_watermark != upto:
            raise Wrong(f"records before {upto} were deleted, and the log starts at {found.low_watermark}")
        model.did(_START, upto)

    # -- looking

    def look(self) -> None:
        check, client = self._tools.model.check_thing, self._client
        metadata = client.call(MetadataRequest(None), 9)
        there = {topic.name: len(topic.partitions) for topic in metadata.topics}
        if there.keys() - {*TOPICS, *_EXTRA}:
            raise Wrong(f"topics nobody made: {sorted(there.keys() - {*TOPICS, *_EXTRA})}")
        for name in _EXTRA:
            check(("topic", name), (there[name], self._retention(name)) if name in there else None)
        filter = DescribeAclsRequest(_ANY, None, _ANY, None, None, _ANY, _ANY)
        rules = {acl.principal for one in client.call(filter, 3).resources for acl in one.acls}
        for user in _RULES:
            check(("rule", user), f"User:{user}" in rules)
        for user in _USERS:
            answer = client.call(DescribeUserScramCredentialsRequest([UserName(user)]), 0).results[0]
            infos = answer.credential_infos
            check(("password", user), infos[0].iterations if infos else None)
        check(_START, offset(client, (TRIMMED, 0), EARLIEST))

    def _retention(self, name: str) -> str:
        asked = DescribeConfigsResource(_TOPIC, name, [_RETENTION])
        (result,) = self._client.call(DescribeConfigsRequest([asked]), 4).results
        self._tools.check(result.error_code, f"the configs of {name}")
        value: str = result.configs[0].value
        return value
