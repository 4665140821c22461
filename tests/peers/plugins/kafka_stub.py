"""A pytest plugin for Kafka clients' suites that start their own broker: they get the target's ports instead.

Loaded with `-p kafka_stub`. kafka-python's fixtures make brokers by `KafkaFixture`; aiokafka's want a container with a
broker, and tools in it for ACLs and passwords: the same is done over the wire.
"""

import importlib
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

HOST = "localhost"
CERTIFICATES = {"ca.crt": "ca.pem", "ca-cert": "ca.pem", "client.crt": "client.pem", "client.key": "client.key"}


def port(tls: bool, sasl: bool) -> int:
    return int(os.environ[f"PEER{'_SASL' if sasl else ''}{'_TLS' if tls else ''}_PORT"])


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    try:
        fixtures: Any = importlib.import_module("test.integration.fixtures")  # kafka-python's
    except ImportError:
        return

    class Broker(fixtures.KafkaFixture):  # type: ignore[misc]
        def __init__(self, transport: str = "PLAINTEXT", sasl_mechanism: str | None = None, **_: Any) -> None:
            self.external = self.running = True
            self.host, self.port = HOST, port(transport.endswith("SSL"), transport.startswith("SASL"))
            self.transport, self.sasl_mechanism = transport, sasl_mechanism
            self.partitions, self.replicas, self.zookeeper = 4, 1, None
            self.ssl_dir = str(_certificates(Path("certificates")))
            self.tmp_dir = None
            self.child = fixtures.ExternalService(self.host, self.port)

        def start(self) -> None: ...

        def get_topic_names(self) -> list[str]:
            with fixtures.KafkaAdminClient(**fixtures.client_params(self, "admin")) as admin:
                return list(admin.list_topics())

    fixtures.KafkaFixture.instance = classmethod(lambda kind, broker_id, **words: Broker(**words))


class Rules:
    """What aiokafka's tests want of Kafka's tools for ACLs."""

    def __init__(self, admin: Any) -> None:
        self._admin = admin
        self._added: list[Any] = []

    def add_acl(self, **words: Any) -> None:
        from kafka import admin

        effects = {"allow_principal": admin.ACLPermissionType.ALLOW, "deny_principal": admin.ACLPermissionType.DENY}
        kinds = {
            "topic": admin.ResourceType.TOPIC,
            "group": admin.ResourceType.GROUP,
            "transactional_id": admin.ResourceType.TRANSACTIONAL_ID,
        }
        operation = admin.ACLOperation[words["operation"].upper()]
        patterns = [admin.ResourcePattern(kinds[kind], words[kind]) for kind in kinds if kind in words]
        if words.get("cluster"):
            patterns.append(admin.ResourcePattern(admin.ResourceType.CLUSTER, "kafka-cluster"))
        for pattern in patterns:
            for name, effect in effects.items():
                if name in words:
                    rule = admin.ACL(f"User:{words[name]}", "*", operation, effect, pattern)
                    self._admin.create_acls([rule])
                    self._added.append(rule)

    def list_acl(self, principal: str | None = None) -> None:
        pass  # asked for to be looked at only

    def cleanup(self) -> None:
        if self._added:
            self._admin.delete_acls(self._added)
        self._added.clear()


class Passwords:
    def __init__(self, admin: Any) -> None:
        self._admin = admin

    def add_scram_user(self, name: str, password: str) -> None:
        from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            self._admin.alter_user_scram_credentials([UserScramCredentialUpsertion(name, mechanism, password)])


def _certificates(folder: Path) -> Path:
    """Under the names that the suites look for."""
    given = Path(os.environ["PEER_CERTIFICATES"])
    folder.mkdir(parents=True, exist_ok=True)
    for name, ours in CERTIFICATES.items():
        shutil.copy(given / ours, folder / name)
    return folder


def _given(name: str, request: pytest.FixtureRequest) -> Any:
    """What aiokafka's fixture of that name is here."""
    match name:
        case "docker":
            return None
        case "kafka_image":
            return "none"
        case "ssl_folder":
            return _certificates(Path("tests/ssl_cert"))
        case "kafka_server":
            return SimpleNamespace(
                host=HOST,
                port=port(tls=False, sasl=False),
                ssl_port=port(tls=True, sasl=False),
                sasl_plain_port=port(tls=False, sasl=True),
                sasl_ssl_port=port(tls=True, sasl=True),
                hosts=[f"{HOST}:{port(tls=False, sasl=False)}"],
                container=None,
            )
        case "kerberos_utils":
            return SimpleNamespace(kinit=lambda _: pytest.skip("no Kerberos here"), kdestroy=lambda: None)
        case "acl_manager":
            return Rules(_admin())
        case "kafka_config":
            return Passwords(_admin())
    return None


GIVEN = ("docker", "kafka_image", "ssl_folder", "kafka_server", "kerberos_utils", "acl_manager", "kafka_config")


def _admin() -> Any:
    from kafka import KafkaAdminClient

    return KafkaAdminClient(bootstrap_servers=f"{HOST}:{port(tls=False, sasl=False)}")


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> Any:
    if fixturedef.argname not in GIVEN:
        return None
    value = _given(fixturedef.argname, request)
    fixturedef.cached_result = (value, fixturedef.cache_key(request), None)
    return value if value is not None else False
