"""TLS ports: certificates that work and that do not, clients with and without one, handshakes that never end."""

import asyncio
import random
import socket
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Literal

import pytest
import uvloop

import interlog
from interlog.base.errors import SettingError
from interlog.faces.face import Peer
from interlog.journal.files import DiskFiles
from interlog.journal.slices import FileRange
from interlog.net import listener as listener_module
from interlog.net.listener import Listener
from interlog.net.peers import _distinguished
from interlog.net.tls import Tls, TlsError
from tests.certificates import Certificates, certificates_in
from tests.unit.test_driver import LineEcho, Net

PATIENCE_SECONDS = 10


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates_in(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(params=[uvloop.Loop, asyncio.SelectorEventLoop], ids=["uvloop", "asyncio"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, None]], None]:
    def run(scene: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(scene, PATIENCE_SECONDS))

    return run


class TlsNet(Net):
    """The toy face behind TLS."""

    def __init__(self, tls: Tls, limit: int = 100) -> None:
        super().__init__(limit)
        self.peers: list[Peer] = []
        self.listener = Listener("echo", self.driver, self.make_face, self.metrics, limit, tls)

    def make_face(self, wake: Callable[[], None], peer: Peer) -> LineEcho:
        self.peers.append(peer)
        return super().make_face(wake, peer)

    @property
    def port(self) -> int:
        return int(self.listener.address.rpartition(":")[2])

    async def tls_client(self, context: ssl.SSLContext) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("localhost", self.port, ssl=context, family=socket.AF_INET)


def server(made: Certificates, client: Literal["off", "optional", "required"] = "off") -> Tls:
    certificate, key = made.make("broker")
    return Tls(certificate, key, made.ca if client != "off" else None, client)


def client_context(made: Certificates, name: str | None = None, subject: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=made.ca)
    if name is not None:
        context.load_cert_chain(*made.make(name, subject, "DNS:app.example,email:ann@example.org"))
    return context


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: bytes) -> bytes:
    writer.write(line)
    return await reader.readline()


def test_a_face_behind_tls_is_the_same_face(run: Any, certificates: Certificates) -> None:
    async def scene() -> None:
        net = TlsNet(server(certificates))
        await net.open()
        reader, writer = await net.tls_client(client_context(certificates))
        assert await echo(reader, writer, b"hello\n") == b"hello\n"
        large = b"x" * 3_000_000
        writer.write(b"flood 3000000\n")
        assert await reader.readexactly(len(large)) == large
        (peer,) = net.peers
        assert (peer.tls, peer.loopback, peer.host, peer.certificate) == (True, True, "127.0.0.1", ())
        writer.write(b"bye\n")
        assert await reader.read() == b"bye\n"
        writer.close()
        while net.listener.open:
            await asyncio.sleep(0)
        assert net.faces[0].lost == 1
        net.listener.close()

    run(scene())


def test_what_lies_in_files_comes_whole_to_a_client_that_only_reads(
    run: Any, certificates: Certificates, tmp_path: Path
) -> None:
    data = random.Random(1).randbytes(3_000_000)
    path = tmp_path / "file"
    path.write_bytes(data)

    async def scene() -> None:
        net = TlsNet(server(certificates))
        await net.open()
        reader, writer = await net.tls_client(client_context(certificates))
        assert await echo(reader, writer, b"hello\n") == b"hello\n"
        file = DiskFiles().open(path)
        (face,) = net.faces
        for length in (1, 65_536, 65_537, 1_000_000, 3_000_000):
            face._output += [b"head", FileRange(file, 0, length), b"tail"]  # type: ignore[list-item]
            face.wake()
            assert await reader.readexactly(length + 8) == b"head" + data[:length] + b"tail"
        file.close()
        writer.close()
        while net.listener.open:
            await asyncio.sleep(0)
        net.listener.close()

    run(scene())


def test_the_face_is_told_the_names_in_a_client_s_certificate(run: Any, certificates: Certificates) -> None:
    async def scene() -> None:
        net = TlsNet(server(certificates, "optional"))
        await net.open()
        for context in (client_context(certificates), client_context(certificates, "ann", "/O=Example, Inc./CN=ann")):
            reader, writer = await net.tls_client(context)
            await echo(reader, writer, b"hello\n")
            writer.close()
        anonymous, ann = net.peers
        assert anonymous.certificate == ()
        assert ann.certificate == ("ann", "app.example", "ann@example.org", r"CN=ann,O=Example\, Inc.")
        net.listener.close()

    run(scene())


def test_who_needs_a_certificate_and_has_none_or_another_authority_s_gets_nowhere(
    run: Any, certificates: Certificates, tmp_path: Path
) -> None:
    strangers = certificates_in(tmp_path / "strangers")

    async def scene() -> None:
        net = TlsNet(server(certificates, "required"))
        await net.open()
        stranger = client_context(certificates)
        stranger.load_cert_chain(*strangers.make("ann"))
        for context in (client_context(certificates), stranger):
            with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                reader, writer = await net.tls_client(context)
                writer.write(b"hello\n")
                await reader.readexactly(1)
        assert net.faces == []
        reader, writer = await net.tls_client(client_context(certificates, "ann"))
        assert await echo(reader, writer, b"hello\n") == b"hello\n"
        writer.close()
        net.listener.close()

    run(scene())


def test_handshakes_that_fail_or_never_end_give_their_place_back(
    run: Any, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "HANDSHAKE_SECONDS", 0.05)
    called: list[Any] = []
    checked = Listener._check_handshake

    async def scene() -> None:
        net = TlsNet(server(certificates), limit=3)
        await net.open()
        plain = [await asyncio.open_connection("127.0.0.1", net.port) for _ in range(2)]
        plain[0][1].write(b"GET / HTTP/1.1\r\n\r\n")
        assert await plain[0][0].read() is not None
        await plain[1][0].read()  # silent; hung up on when its time is over
        assert net.listener.open == 2
        for connection in called:
            checked(net.listener, connection)
        assert net.listener.open == 0
        assert 'interlog_handshakes_failed_total{protocol="echo"} 2' in net.metrics.render()
        assert net.faces == []
        for _, writer in plain:
            writer.close()
        net.listener.close()

    # Its own timer waits a second longer than the handshake may take; the test does not.
    monkeypatch.setattr(Listener, "_check_handshake", lambda self, connection: None)
    made = Listener._connection

    def note(self: Listener) -> asyncio.Protocol:
        connection = made(self)
        called.append(connection)
        return connection

    monkeypatch.setattr(Listener, "_connection", note)
    run(scene())


def test_a_new_certificate_is_used_once_it_is_read_again(run: Any, tmp_path: Path) -> None:
    made = certificates_in(tmp_path / "made")

    async def serial(net: TlsNet) -> str:
        _, writer = await net.tls_client(client_context(made))
        certificate = writer.get_extra_info("peercert")
        writer.close()
        return str(certificate["serialNumber"])

    async def scene() -> None:
        tls = server(made)
        net = TlsNet(tls)
        await net.open()
        first = await serial(net)
        good = (made.folder / "broker.pem").read_bytes()
        (made.folder / "broker.pem").write_text("nonsense")
        with pytest.raises(TlsError, match="cannot be used"):
            tls.reload()
        assert await serial(net) == first
        (made.folder / "broker.pem").write_bytes(good)
        made.make("broker")
        tls.reload()
        assert await serial(net) != first
        net.listener.close()

    run(scene())


def test_old_protocols_are_not_spoken(certificates: Certificates) -> None:
    assert server(certificates).context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_what_is_wrong_with_a_certificate_is_a_sentence(certificates: Certificates, tmp_path: Path) -> None:
    certificate, key = certificates.make("broker")
    other = certificates.make("other")[1]
    text = tmp_path / "text"
    text.write_text("nothing")
    cases: list[tuple[Path, Path | None, Path | None, str]] = [
        (tmp_path / "none.pem", key, None, "No such file or directory"),
        (certificate, tmp_path / "none.key", None, "No such file or directory"),
        (certificate, other, None, "the key belongs to another certificate"),
        (text, key, None, "cannot be used"),
        (certificate, text, None, "cannot be used"),
        (certificate, None, None, "cannot be used"),
        (certificate, certificates.encrypt(key), None, "The key of tls_key is encrypted"),
        (certificate, key, text, "The certificates of tls_ca"),
        (certificate, key, tmp_path / "none", "No such file or directory"),
    ]
    for broker, its_key, ca, sentence in cases:
        with pytest.raises(TlsError, match=sentence):
            Tls(broker, its_key, ca, "optional" if ca else "off")
    with pytest.raises(TlsError, match="without tls_ca"):
        Tls(certificate, key, None, "required")
    together = tmp_path / "together.pem"
    together.write_bytes(certificate.read_bytes() + key.read_bytes())
    Tls(together, None, None, "off")


def test_a_subject_is_written_as_rfc_4514_says() -> None:
    subject = ((("countryName", "DE"),), (("commonName", ' a+b,"c" '), ("userId", "7")), (("serialNumber", "#1"),))
    assert _distinguished(subject) == r"serialNumber=\#1,CN=\ a\+b\,\"c\"\ +UID=7,C=DE"


# -- the broker


def test_the_broker_serves_http_over_tls(certificates: Certificates) -> None:
    certificate, key = certificates.make("broker")

    async def scene() -> None:
        async with interlog.Broker(https_port=0, tls_certificate=certificate, tls_key=key) as broker:
            port = int(broker.addresses["https"].rpartition(":")[2])
            context = client_context(certificates)
            reader, writer = await asyncio.open_connection("localhost", port, ssl=context, family=socket.AF_INET)
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert b'"status": "ok"' in await reader.read()
            writer.close()

    asyncio.run(scene())


def test_a_certificate_is_enough_to_come_in_by_amqp(certificates: Certificates) -> None:
    import pika

    certificate, key = certificates.make("broker")

    def visit(port: int, context: ssl.SSLContext) -> str:
        where = pika.ConnectionParameters(
            "localhost",
            port,
            ssl_options=pika.SSLOptions(context, "localhost"),
            credentials=pika.credentials.ExternalCredentials(),
        )
        with pika.BlockingConnection(where) as connection:
            channel = connection.channel()
            channel.queue_declare("ann.q")
            try:
                channel.queue_declare("q")
            except pika.exceptions.ChannelClosedByBroker as error:
                return str(error.reply_text)
        return ""

    async def scene() -> None:
        async with interlog.Broker(
            amqps_port=0, tls_certificate=certificate, tls_key=key, tls_ca=certificates.ca, tls_client="optional"
        ) as broker:
            broker.core.access.add_user("ann", None)
            broker.core.access.set_permissions("/", "ann", "^ann", "^ann", "^ann")
            port = int(broker.addresses["amqps"].rpartition(":")[2])
            refused = await asyncio.to_thread(visit, port, client_context(certificates, "ann"))
            assert refused.startswith("ACCESS_REFUSED - ")
            with pytest.raises((pika.exceptions.AMQPConnectionError, pika.exceptions.ProbableAuthenticationError)):
                await asyncio.to_thread(visit, port, client_context(certificates, "bob"))

    asyncio.run(scene())


def test_a_tls_port_without_a_certificate_is_refused_before_anything_is_started() -> None:
    with pytest.raises(SettingError, match="https_port = 0 needs a certificate: set tls_certificate and tls_key"):
        interlog.Broker(https_port=0)
    with pytest.raises(SettingError, match="tls_client = 'required' needs tls_ca"):
        interlog.Broker(tls_client="required")


def test_a_certificate_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    async def scene() -> None:
        with pytest.raises(interlog.InterlogError, match=r"none\.pem cannot be used: No such file"):
            await interlog.Broker(https_port=0, tls_certificate=tmp_path / "none.pem").start()

    asyncio.run(scene())
