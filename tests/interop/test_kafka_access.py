"""Kafka clients that log in, by password and by certificate, and what they may not do, in their own words for it."""

import asyncio
import ssl
from collections.abc import Iterator
from typing import Any

import aiokafka
import aiokafka.errors
import confluent_kafka as ck
import kafka
import kafka.errors
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from interlog.testing import RunningBroker, running
from tests.certificates import Certificates, certificates_in
from tests.interop import confluent
from tests.interop.confluent import PATIENCE_SECONDS, admin_of, consumer_of, create, produce, read, take, told

MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates_in(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def guarded(certificates: Certificates) -> Iterator[RunningBroker]:
    """Who does not log in may do nothing. There is ann, who may do what begins with mine-, and guest, who may all."""
    certificate, key = certificates.make("broker")
    settings = {
        "kafka_authentication": "on",
        "kafkas_port": 0,
        "tls_certificate": certificate,
        "tls_key": key,
        "tls_ca": certificates.ca,
        "tls_client": "optional",
    }
    with running(**settings) as broker:
        broker.call(lambda core: core.access.add_user("ann", "secret"))
        broker.call(lambda core: core.access.set_permissions("/", "ann", "^mine-", "^mine-", "^mine-"))
        yield broker


def login(user: str = "ann", password: str = "secret", mechanism: str = "PLAIN", tls: bool = False) -> dict[str, Any]:
    return {
        "security.protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


GUEST = login("guest", "guest")


def dotless(settings: dict[str, Any]) -> dict[str, Any]:
    return {name.replace(".", "_"): value for name, value in settings.items()}


def context(certificates: Certificates, name: str | None = None) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(certificates.ca))
    if name is not None:
        made.load_cert_chain(*certificates.make(name))
    return made


def tls_address(broker: RunningBroker) -> str:
    return f"localhost:{broker.addresses['kafkas'].rpartition(':')[2]}"


def code_of(caught: "pytest.ExceptionInfo[ck.KafkaException]") -> int:
    code: int = caught.value.args[0].code()
    return code


def first_error(address: str, settings: dict[str, Any]) -> int:
    """That a producer with these settings is told of by itself."""
    errors: list[int] = []
    told_of = {**settings, "error_cb": lambda error: errors.append(error.code()), "log_level": 0}
    producer = ck.Producer(told(address, told_of))
    confluent.until(lambda: bool(producer.poll(0.02)) or bool(errors), "an error comes")
    return errors[0]


@every_mechanism
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_confluent_kafka_logs_in(guarded: RunningBroker, certificates: Certificates, mechanism: str, tls: bool) -> None:
    address = tls_address(guarded) if tls else guarded.kafka_address
    settings = login(mechanism=mechanism, tls=tls)
    if tls:
        settings["ssl.ca.location"] = str(certificates.ca)
    topic = f"mine-{mechanism}-{tls}".lower()
    produce(address, topic, [{"value": b"%d" % n} for n in range(10)], **settings)
    with consumer_of(address, "mine-group", **settings) as consumer:
        consumer.subscribe([topic])
        assert [message.value() for message in take(consumer, 10)] == [b"%d" % n for n in range(10)]


@every_mechanism
def test_kafka_python_logs_in(guarded: RunningBroker, certificates: Certificates, mechanism: str) -> None:
    settings = {
        "bootstrap_servers": tls_address(guarded),
        "security_protocol": "SASL_SSL",
        "ssl_context": context(certificates),
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "ann",
        "sasl_plain_password": "secret",
    }
    producer = kafka.KafkaProducer(**settings)
    assert producer.send("mine-kp", mechanism.encode()).get(PATIENCE_SECONDS).topic == "mine-kp"
    with pytest.raises(kafka.errors.TopicAuthorizationFailedError):
        producer.send("theirs", b"x").get(PATIENCE_SECONDS)
    producer.close(timeout=1)


@every_mechanism
def test_aiokafka_logs_in(guarded: RunningBroker, certificates: Certificates, mechanism: str) -> None:
    async def work() -> None:
        settings = {
            "bootstrap_servers": tls_address(guarded),
            "security_protocol": "SASL_SSL",
            "ssl_context": context(certificates),
            "sasl_mechanism": mechanism,
            "sasl_plain_username": "ann",
            "sasl_plain_password": "secret",
        }
        async with aiokafka.AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait("mine-aio", mechanism.encode())
            with pytest.raises(aiokafka.errors.TopicAuthorizationFailedError):
                await producer.send_and_wait("theirs", b"x")

    asyncio.run(asyncio.wait_for(work(), PATIENCE_SECONDS))


@every_mechanism
def test_a_wrong_password_is_told_as_that(guarded: RunningBroker, mechanism: str) -> None:
    wrong = login(password="guess", mechanism=mechanism)
    assert first_error(guarded.kafka_address, wrong) == ck.KafkaError._AUTHENTICATION
    nobody = login("nobody", "secret", mechanism)
    assert first_error(guarded.kafka_address, nobody) == ck.KafkaError._AUTHENTICATION


def test_who_does_not_log_in_gets_nothing(guarded: RunningBroker, certificates: Certificates) -> None:
    for address, settings in (
        (guarded.kafka_address, {}),
        (tls_address(guarded), {"security.protocol": "SSL", "ssl.ca.location": str(certificates.ca)}),
    ):
        admin = admin_of(address, {**settings, "log_level": 0})
        with pytest.raises(ck.KafkaException):
            admin.list_topics(timeout=0.5)


def test_a_certificate_is_a_login(guarded: RunningBroker, certificates: Certificates) -> None:
    certificate, key = certificates.make("ann")
    settings = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(certificates.ca),
        "ssl.certificate.location": str(certificate),
        "ssl.key.location": str(key),
    }
    address = tls_address(guarded)
    produce(address, "mine-by-certificate", [{"value": b"x"}], **settings)
    with pytest.raises(ck.KafkaException) as caught:
        create(address, "theirs", more=settings)
    assert code_of(caught) == ck.KafkaError.TOPIC_AUTHORIZATION_FAILED
    producer = kafka.KafkaProducer(
        bootstrap_servers=address, security_protocol="SSL", ssl_context=context(certificates, "ann")
    )
    assert producer.send("mine-by-certificate", b"y").get(PATIENCE_SECONDS).offset == 1
    producer.close(timeout=1)


def test_a_broker_that_is_not_who_it_says_is_left(guarded: RunningBroker) -> None:
    """The client's own check: it does not know the authority."""
    admin = admin_of(tls_address(guarded), {"security.protocol": "SSL", "log_level": 0})
    with pytest.raises(ck.KafkaException):
        admin.list_topics(timeout=0.5)


def test_what_permissions_do_not_allow(guarded: RunningBroker) -> None:
    address = guarded.kafka_address
    ann = login()
    produce(address, "theirs-log", [{"value": b"secret"}], **GUEST)
    refused: list[int] = []
    producer = ck.Producer(told(address, ann))
    producer.produce("theirs-log", b"x", on_delivery=lambda error, _: refused.append(error.code() if error else 0))
    producer.flush(PATIENCE_SECONDS)
    assert refused == [ck.KafkaError.TOPIC_AUTHORIZATION_FAILED]
    for group, topic, code in (
        ("mine-g", "theirs-log", ck.KafkaError.TOPIC_AUTHORIZATION_FAILED),
        ("theirs-g", "mine-log", ck.KafkaError.GROUP_AUTHORIZATION_FAILED),
    ):
        with consumer_of(address, group, **ann) as consumer:
            consumer.subscribe([topic])
            message = consumer.poll(PATIENCE_SECONDS)
            assert message is not None
            error = message.error()
            assert error is not None and error.code() == code
    transactional = ck.Producer(told(address, {**ann, "transactional.id": "theirs-t"}))
    with pytest.raises(ck.KafkaException) as caught:
        transactional.init_transactions(PATIENCE_SECONDS)
    assert code_of(caught) == ck.KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    admin = admin_of(address, ann)
    assert "theirs-log" not in admin.list_topics(timeout=PATIENCE_SECONDS).topics
    with pytest.raises(ck.KafkaException) as caught:
        admin.delete_topics(["theirs-log"])["theirs-log"].result(PATIENCE_SECONDS)
    assert code_of(caught) == ck.KafkaError.TOPIC_AUTHORIZATION_FAILED
    mine = _rule("theirs-log", AclPermissionType.ALLOW)
    with pytest.raises(ck.KafkaException) as caught:
        admin.create_acls([mine])[mine].result(PATIENCE_SECONDS)
    assert code_of(caught) == ck.KafkaError.CLUSTER_AUTHORIZATION_FAILED


def _rule(topic: str, permission: AclPermissionType, operation: AclOperation = AclOperation.READ) -> AclBinding:
    return AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:ann", "*", operation, permission)


def _rule_filter(topic: str) -> AclBindingFilter:
    return AclBindingFilter(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        None,  # type: ignore[arg-type] # None is any
        None,  # type: ignore[arg-type]
        AclOperation.ANY,
        AclPermissionType.ANY,
    )


def test_rules_of_kafka_allow_and_deny_at_once(guarded: RunningBroker) -> None:
    address = guarded.kafka_address
    admin = admin_of(address, GUEST)
    produce(address, "shared-log", [{"value": b"for all"}], **GUEST)

    def ann_reads() -> bool:
        return "shared-log" in admin_of(address, login()).list_topics(timeout=PATIENCE_SECONDS).topics

    assert not ann_reads()
    allow = _rule("shared-log", AclPermissionType.ALLOW)
    admin.create_acls([allow])[allow].result(PATIENCE_SECONDS)
    assert ann_reads()
    settings = dotless(login())
    assert [one.value() for one in read(address, "shared-log", 1, group="mine-g", **settings)] == [b"for all"]
    assert allow in admin.describe_acls(_rule_filter("shared-log")).result(PATIENCE_SECONDS)
    deny = _rule("shared-log", AclPermissionType.DENY, AclOperation.ALL)
    admin.create_acls([deny])[deny].result(PATIENCE_SECONDS)
    assert not ann_reads()
    asked = _rule_filter("shared-log")
    removed = admin.delete_acls([asked])[asked].result(PATIENCE_SECONDS)
    assert {allow, deny} <= set(removed)
    assert not ann_reads()


def test_passwords_are_set_over_kafka(guarded: RunningBroker) -> None:
    """For users that are there and for those that are not; a password that is taken away opens nothing."""
    address = guarded.kafka_address
    admin = admin_of(address, GUEST)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion("bob", info, b"of bob")
    admin.alter_user_scram_credentials([change])["bob"].result(PATIENCE_SECONDS)
    guarded.call(lambda core: core.access.set_permissions("/", "bob", "^bobs-", "^bobs-", "^bobs-"))
    bob = login("bob", "of bob", "SCRAM-SHA-512")
    produce(address, "bobs-log", [{"value": b"x"}], **bob)
    answers: Any = admin.describe_user_scram_credentials(["bob"])
    described = answers["bob"].result(PATIENCE_SECONDS)
    assert [one.mechanism for one in described.scram_credential_infos] == [ScramMechanism.SCRAM_SHA_512]
    removal = UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_512)
    admin.alter_user_scram_credentials([removal])["bob"].result(PATIENCE_SECONDS)
    assert first_error(address, bob) == ck.KafkaError._AUTHENTICATION


def test_who_loses_a_permission_loses_it_at_once(guarded: RunningBroker) -> None:
    address = guarded.kafka_address
    guarded.call(lambda core: core.access.add_user("eve", "secret"))
    guarded.call(lambda core: core.access.set_permissions("/", "eve", "^eves-", "^eves-", "^eves-"))
    outcomes: list[int] = []
    producer = ck.Producer(told(address, login("eve")))

    def send() -> int:
        producer.produce("eves-log", b"x", on_delivery=lambda error, _: outcomes.append(error.code() if error else 0))
        producer.flush(PATIENCE_SECONDS)
        return outcomes[-1]

    assert send() == 0
    guarded.call(lambda core: core.access.set_permissions("/", "eve", "^$", "^$", "^eves-"))
    assert send() == ck.KafkaError.TOPIC_AUTHORIZATION_FAILED
