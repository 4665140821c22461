"""The methods of AMQP 0-9-1 with RabbitMQ's extensions, a class each: from a frame's payload, and back to it.

Made by tools/amqp_methods.py; change that, not this. (Made code may be longer than other modules.)
Reserved arguments are left out. Texts are str, long strings bytes.
"""

from __future__ import annotations

from struct import Struct

from interlog.faces.amqp.errors import unknown_method
from interlog.faces.amqp.tables import encode_table, read_table
from interlog.faces.amqp.values import Table
from interlog.faces.amqp.wire import (
    ONE,
    READ_ERRORS,
    SIZE,
    Method,
    long,
    malformed,
    read_long,
    read_loose_short,
    read_short,
    short,
)

S_BB = Struct(">BB")
S_H = Struct(">H")
S_HH = Struct(">HH")
S_HIH = Struct(">HIH")
S_I = Struct(">I")
S_IBB = Struct(">IBB")
S_IH = Struct(">IH")
S_IHB = Struct(">IHB")
S_IHIH = Struct(">IHIH")
S_II = Struct(">II")
S_IIHB = Struct(">IIHB")
S_IQB = Struct(">IQB")
S_QB = Struct(">QB")


class ConnectionStart(Method):
    __slots__ = ("locales", "mechanisms", "server_properties", "version_major", "version_minor")

    id = 0x000A000A
    name = "connection.start"
    synchronous = True
    from_server = True
    from_client = False

    def __init__(
        self,
        version_major: int = 0,
        version_minor: int = 9,
        server_properties: Table | None = None,
        mechanisms: bytes = b"PLAIN",
        locales: bytes = b"en_US",
    ) -> None:
        self.version_major = version_major
        self.version_minor = version_minor
        self.server_properties = {} if server_properties is None else server_properties
        self.mechanisms = mechanisms
        self.locales = locales

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ConnectionStart:
        try:
            version_major, version_minor = S_BB.unpack_from(data, at)
            at += 2
            server_properties, at = read_table(data, at, end)
            mechanisms, at = read_long(data, at, end)
            locales, at = read_long(data, at, end)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(version_major, version_minor, server_properties, mechanisms, locales)

    def encode(self) -> bytes:
        return (
            S_IBB.pack(0x000A000A, self.version_major, self.version_minor)
            + encode_table(self.server_properties)
            + long(self.mechanisms)
            + long(self.locales)
        )


class ConnectionStartOk(Method):
    __slots__ = ("client_properties", "locale", "mechanism", "response")

    id = 0x000A000B
    name = "connection.start-ok"

    def __init__(
        self,
        client_properties: Table | None = None,
        mechanism: str = "PLAIN",
        response: bytes = b"",
        locale: str = "en_US",
    ) -> None:
        self.client_properties = {} if client_properties is None else client_properties
        self.mechanism = mechanism
        self.response = response
        self.locale = locale

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ConnectionStartOk:
        try:
            client_properties, at = read_table(data, at, end)
            mechanism, at = read_short(data, at)
            response, at = read_long(data, at, end)
            locale, at = read_short(data, at)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(client_properties, mechanism, response, locale)

    def encode(self) -> bytes:
        return (
            b"\x00\x0a\x00\x0b"
            + encode_table(self.client_properties)
            + short(self.mechanism)
            + long(self.response)
            + short(self.locale)
        )


class ConnectionSecure(Method):
    __slots__ = ("challenge",)

    id = 0x000A0014
    name = "connection.secure"
    synchronous = True
    from_server = True
    from_client = False

    def __init__(self, challenge: bytes = b"") -> None:
        self.challenge = challenge

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ConnectionSecure:
        try:
            challenge, at = read_long(data, at, end)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(challenge)

    def encode(self) -> bytes:
        return b"\x00\x0a\x00\x14" + long(self.challenge)


class ConnectionSecureOk(Method):
    __slots__ = ("response",)

    id = 0x000A0015
    name = "connection.secure-ok"

    def __init__(self, response: bytes = b"") -> None:
        self.response = response

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ConnectionSecureOk:
        try:
            response, at = read_long(data, at, end)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(response)

    def encode(self) -> bytes:
        return b"\x00\x0a\x00\x15" + long(self.response)


class ConnectionTune(Method):
    __slots__ = ("channel_max", "frame_max", "heartbeat")

    id = 0x000A001E
    name = "connection.tune"
    synchronous = True
    from_server = True
    from_client = False

    def __init__(self, channel_max: int = 0, frame_max: int = 0, heartbeat: int = 0) -> None:
        self.channel_max = channel_max
        self.frame_max = frame_max
        self.heartbeat = heartbeat

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ConnectionTune:
        if end - at != 8:
            raise malformed(cls)
        channel_max, frame_max, heartbeat = S_HIH.unpack_from(data, at)
        return cls(channel_max, frame_max, heartbeat)

    def encode(self) -> bytes:
        return S_IHIH.pack(0x000A001E, self.channel_max, self.frame_max, self.heartbeat)


class ConnectionTuneOk(Method):
    __slots__ = ("channel_max", "frame_max", "heartbeat")

    id = 0x000A001F
    name = "connection.tune-ok"

    def __init__(self, channel_max: int = 0, frame_max: int = 0, heartbeat: int = 0) -> None:
        self.channel_max = channel_max
        self.frame_max = frame_max
        self.heartbeat = heartbeat

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ConnectionTuneOk:
        if end - at != 8:
            raise malformed(cls)
        channel_max, frame_max, heartbeat = S_HIH.unpack_from(data, at)
        return cls(channel_max, frame_max, heartbeat)

    def encode(self) -> bytes:
        return S_IHIH.pack(0x000A001F, self.channel_max, self.frame_max, self.heartbeat)


class ConnectionOpen(Method):
    __slots__ = ("virtual_host",)

    id = 0x000A0028
    name = "connection.open"
    synchronous = True

    def __init__(self, virtual_host: str = "/") -> None:
        self.virtual_host = virtual_host

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ConnectionOpen:
        try:
            virtual_host, at = read_short(data, at)
            at += 1 + data[at]
            at += 1
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(virtual_host)

    def encode(self) -> bytes:
        return b"\x00\x0a\x00\x28" + short(self.virtual_host) + b"\x00\x00"


class ConnectionOpenOk(Method):
    __slots__ = ()

    id = 0x000A0029
    name = "connection.open-ok"
    from_server = True
    from_client = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ConnectionOpenOk:
        try:
            at += 1 + data[at]
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x0a\x00\x29\x00"


class ConnectionClose(Method):
    __slots__ = ("class_id", "method_id", "reply_code", "reply_text")

    id = 0x000A0032
    name = "connection.close"
    synchronous = True
    from_server = True

    def __init__(self, reply_code: int = 0, reply_text: str = "", class_id: int = 0, method_id: int = 0) -> None:
        self.reply_code = reply_code
        self.reply_text = reply_text
        self.class_id = class_id
        self.method_id = method_id

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ConnectionClose:
        try:
            (reply_code,) = S_H.unpack_from(data, at)
            at += 2
            reply_text, at = read_short(data, at)
            class_id, method_id = S_HH.unpack_from(data, at)
            at += 4
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(reply_code, reply_text, class_id, method_id)

    def encode(self) -> bytes:
        return (
            S_IH.pack(0x000A0032, self.reply_code) + short(self.reply_text) + S_HH.pack(self.class_id, self.method_id)
        )


class ConnectionCloseOk(Method):
    __slots__ = ()

    id = 0x000A0033
    name = "connection.close-ok"
    from_server = True

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ConnectionCloseOk:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x0a\x00\x33"


class ConnectionBlocked(Method):
    __slots__ = ("reason",)

    id = 0x000A003C
    name = "connection.blocked"
    from_server = True
    from_client = False

    def __init__(self, reason: str = "") -> None:
        self.reason = reason

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ConnectionBlocked:
        try:
            reason, at = read_short(data, at)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(reason)

    def encode(self) -> bytes:
        return b"\x00\x0a\x00\x3c" + short(self.reason)


class ConnectionUnblocked(Method):
    __slots__ = ()

    id = 0x000A003D
    name = "connection.unblocked"
    from_server = True
    from_client = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ConnectionUnblocked:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x0a\x00\x3d"


class ConnectionUpdateSecret(Method):
    __slots__ = ("new_secret", "reason")

    id = 0x000A0046
    name = "connection.update-secret"
    synchronous = True

    def __init__(self, new_secret: bytes = b"", reason: str = "") -> None:
        self.new_secret = new_secret
        self.reason = reason

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ConnectionUpdateSecret:
        try:
            new_secret, at = read_long(data, at, end)
            reason, at = read_short(data, at)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(new_secret, reason)

    def encode(self) -> bytes:
        return b"\x00\x0a\x00\x46" + long(self.new_secret) + short(self.reason)


class ConnectionUpdateSecretOk(Method):
    __slots__ = ()

    id = 0x000A0047
    name = "connection.update-secret-ok"
    from_server = True
    from_client = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ConnectionUpdateSecretOk:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x0a\x00\x47"


class ChannelOpen(Method):
    __slots__ = ()

    id = 0x0014000A
    name = "channel.open"
    synchronous = True

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ChannelOpen:
        try:
            at += 1 + data[at]
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x14\x00\x0a\x00"


class ChannelOpenOk(Method):
    __slots__ = ()

    id = 0x0014000B
    name = "channel.open-ok"
    from_server = True
    from_client = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ChannelOpenOk:
        try:
            _, at = read_long(data, at, end)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x14\x00\x0b\x00\x00\x00\x00"


class ChannelFlow(Method):
    __slots__ = ("active",)

    id = 0x00140014
    name = "channel.flow"
    synchronous = True
    from_server = True

    def __init__(self, active: bool = False) -> None:
        self.active = active

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ChannelFlow:
        if end - at != 1:
            raise malformed(cls)
        bits = data[at]
        return cls(bits & 1 != 0)

    def encode(self) -> bytes:
        return b"\x00\x14\x00\x14" + ONE[self.active]


class ChannelFlowOk(Method):
    __slots__ = ("active",)

    id = 0x00140015
    name = "channel.flow-ok"
    from_server = True

    def __init__(self, active: bool = False) -> None:
        self.active = active

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ChannelFlowOk:
        if end - at != 1:
            raise malformed(cls)
        bits = data[at]
        return cls(bits & 1 != 0)

    def encode(self) -> bytes:
        return b"\x00\x14\x00\x15" + ONE[self.active]


class ChannelClose(Method):
    __slots__ = ("class_id", "method_id", "reply_code", "reply_text")

    id = 0x00140028
    name = "channel.close"
    synchronous = True
    from_server = True

    def __init__(self, reply_code: int = 0, reply_text: str = "", class_id: int = 0, method_id: int = 0) -> None:
        self.reply_code = reply_code
        self.reply_text = reply_text
        self.class_id = class_id
        self.method_id = method_id

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ChannelClose:
        try:
            (reply_code,) = S_H.unpack_from(data, at)
            at += 2
            reply_text, at = read_short(data, at)
            class_id, method_id = S_HH.unpack_from(data, at)
            at += 4
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(reply_code, reply_text, class_id, method_id)

    def encode(self) -> bytes:
        return (
            S_IH.pack(0x00140028, self.reply_code) + short(self.reply_text) + S_HH.pack(self.class_id, self.method_id)
        )


class ChannelCloseOk(Method):
    __slots__ = ()

    id = 0x00140029
    name = "channel.close-ok"
    from_server = True

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ChannelCloseOk:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x14\x00\x29"


class AccessRequest(Method):
    __slots__ = ("active", "exclusive", "passive", "read", "realm", "write")

    id = 0x001E000A
    name = "access.request"
    synchronous = True

    def __init__(
        self,
        realm: str = "/data",
        exclusive: bool = False,
        passive: bool = True,
        active: bool = True,
        write: bool = True,
        read: bool = True,
    ) -> None:
        self.realm = realm
        self.exclusive = exclusive
        self.passive = passive
        self.active = active
        self.write = write
        self.read = read

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> AccessRequest:
        try:
            realm, at = read_short(data, at)
            bits = data[at]
            at += 1
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(realm, bits & 1 != 0, bits & 2 != 0, bits & 4 != 0, bits & 8 != 0, bits & 16 != 0)

    def encode(self) -> bytes:
        return (
            b"\x00\x1e\x00\x0a"
            + short(self.realm)
            + ONE[self.exclusive | self.passive << 1 | self.active << 2 | self.write << 3 | self.read << 4]
        )


class AccessRequestOk(Method):
    __slots__ = ("ticket",)

    id = 0x001E000B
    name = "access.request-ok"
    from_server = True
    from_client = False

    def __init__(self, ticket: int = 1) -> None:
        self.ticket = ticket

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> AccessRequestOk:
        if end - at != 2:
            raise malformed(cls)
        (ticket,) = S_H.unpack_from(data, at)
        return cls(ticket)

    def encode(self) -> bytes:
        return S_IH.pack(0x001E000B, self.ticket)


class ExchangeDeclare(Method):
    __slots__ = ("arguments", "auto_delete", "durable", "exchange", "internal", "nowait", "passive", "type")

    id = 0x0028000A
    name = "exchange.declare"
    synchronous = True

    def __init__(
        self,
        exchange: str = "",
        type: str = "direct",
        passive: bool = False,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        nowait: bool = False,
        arguments: Table | None = None,
    ) -> None:
        self.exchange = exchange
        self.type = type
        self.passive = passive
        self.durable = durable
        self.auto_delete = auto_delete
        self.internal = internal
        self.nowait = nowait
        self.arguments = {} if arguments is None else arguments

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ExchangeDeclare:
        try:
            at += 2
            exchange, at = read_short(data, at)
            type, at = read_short(data, at)
            bits = data[at]
            at += 1
            arguments, at = read_table(data, at, end)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(
            exchange, type, bits & 1 != 0, bits & 2 != 0, bits & 4 != 0, bits & 8 != 0, bits & 16 != 0, arguments
        )

    def encode(self) -> bytes:
        return (
            b"\x00\x28\x00\x0a\x00\x00"
            + short(self.exchange)
            + short(self.type)
            + ONE[self.passive | self.durable << 1 | self.auto_delete << 2 | self.internal << 3 | self.nowait << 4]
            + encode_table(self.arguments)
        )


class ExchangeDeclareOk(Method):
    __slots__ = ()

    id = 0x0028000B
    name = "exchange.declare-ok"
    from_server = True
    from_client = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ExchangeDeclareOk:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x28\x00\x0b"


class ExchangeDelete(Method):
    __slots__ = ("exchange", "if_unused", "nowait")

    id = 0x00280014
    name = "exchange.delete"
    synchronous = True

    def __init__(self, exchange: str = "", if_unused: bool = False, nowait: bool = False) -> None:
        self.exchange = exchange
        self.if_unused = if_unused
        self.nowait = nowait

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ExchangeDelete:
        try:
            at += 2
            exchange, at = read_short(data, at)
            bits = data[at]
            at += 1
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(exchange, bits & 1 != 0, bits & 2 != 0)

    def encode(self) -> bytes:
        return b"\x00\x28\x00\x14\x00\x00" + short(self.exchange) + ONE[self.if_unused | self.nowait << 1]


class ExchangeDeleteOk(Method):
    __slots__ = ()

    id = 0x00280015
    name = "exchange.delete-ok"
    from_server = True
    from_client = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ExchangeDeleteOk:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x28\x00\x15"


class ExchangeBind(Method):
    __slots__ = ("arguments", "destination", "nowait", "routing_key", "source")

    id = 0x0028001E
    name = "exchange.bind"
    synchronous = True

    def __init__(
        self,
        destination: str = "",
        source: str = "",
        routing_key: str = "",
        nowait: bool = False,
        arguments: Table | None = None,
    ) -> None:
        self.destination = destination
        self.source = source
        self.routing_key = routing_key
        self.nowait = nowait
        self.arguments = {} if arguments is None else arguments

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ExchangeBind:
        try:
            at += 2
            destination, at = read_short(data, at)
            source, at = read_short(data, at)
            routing_key, at = read_short(data, at)
            bits = data[at]
            at += 1
            arguments, at = read_table(data, at, end)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(destination, source, routing_key, bits & 1 != 0, arguments)

    def encode(self) -> bytes:
        return (
            b"\x00\x28\x00\x1e\x00\x00"
            + short(self.destination)
            + short(self.source)
            + short(self.routing_key)
            + ONE[self.nowait]
            + encode_table(self.arguments)
        )


class ExchangeBindOk(Method):
    __slots__ = ()

    id = 0x0028001F
    name = "exchange.bind-ok"
    from_server = True
    from_client = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ExchangeBindOk:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x28\x00\x1f"


class ExchangeUnbind(Method):
    __slots__ = ("arguments", "destination", "nowait", "routing_key", "source")

    id = 0x00280028
    name = "exchange.unbind"
    synchronous = True

    def __init__(
        self,
        destination: str = "",
        source: str = "",
        routing_key: str = "",
        nowait: bool = False,
        arguments: Table | None = None,
    ) -> None:
        self.destination = destination
        self.source = source
        self.routing_key = routing_key
        self.nowait = nowait
        self.arguments = {} if arguments is None else arguments

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ExchangeUnbind:
        try:
            at += 2
            destination, at = read_short(data, at)
            source, at = read_short(data, at)
            routing_key, at = read_short(data, at)
            bits = data[at]
            at += 1
            arguments, at = read_table(data, at, end)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(destination, source, routing_key, bits & 1 != 0, arguments)

    def encode(self) -> bytes:
        return (
            b"\x00\x28\x00\x28\x00\x00"
            + short(self.destination)
            + short(self.source)
            + short(self.routing_key)
            + ONE[self.nowait]
            + encode_table(self.arguments)
        )


class ExchangeUnbindOk(Method):
    __slots__ = ()

    id = 0x00280033
    name = "exchange.unbind-ok"
    from_server = True
    from_client = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ExchangeUnbindOk:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x28\x00\x33"


class QueueDeclare(Method):
    __slots__ = ("arguments", "auto_delete", "durable", "exclusive", "nowait", "passive", "queue")

    id = 0x0032000A
    name = "queue.declare"
    synchronous = True

    def __init__(
        self,
        queue: str = "",
        passive: bool = False,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        nowait: bool = False,
        arguments: Table | None = None,
    ) -> None:
        self.queue = queue
        self.passive = passive
        self.durable = durable
        self.exclusive = exclusive
        self.auto_delete = auto_delete
        self.nowait = nowait
        self.arguments = {} if arguments is None else arguments

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> QueueDeclare:
        try:
            at += 2
            queue, at = read_short(data, at)
            bits = data[at]
            at += 1
            arguments, at = read_table(data, at, end)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(queue, bits & 1 != 0, bits & 2 != 0, bits & 4 != 0, bits & 8 != 0, bits & 16 != 0, arguments)

    def encode(self) -> bytes:
        return (
            b"\x00\x32\x00\x0a\x00\x00"
            + short(self.queue)
            + ONE[self.passive | self.durable << 1 | self.exclusive << 2 | self.auto_delete << 3 | self.nowait << 4]
            + encode_table(self.arguments)
        )


class QueueDeclareOk(Method):
    __slots__ = ("consumer_count", "message_count", "queue")

    id = 0x0032000B
    name = "queue.declare-ok"
    from_server = True
    from_client = False

    def __init__(self, queue: str = "", message_count: int = 0, consumer_count: int = 0) -> None:
        self.queue = queue
        self.message_count = message_count
        self.consumer_count = consumer_count

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> QueueDeclareOk:
        try:
            queue, at = read_short(data, at)
            message_count, consumer_count = S_II.unpack_from(data, at)
            at += 8
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(queue, message_count, consumer_count)

    def encode(self) -> bytes:
        return b"\x00\x32\x00\x0b" + short(self.queue) + S_II.pack(self.message_count, self.consumer_count)


class QueueBind(Method):
    __slots__ = ("arguments", "exchange", "nowait", "queue", "routing_key")

    id = 0x00320014
    name = "queue.bind"
    synchronous = True

    def __init__(
        self,
        queue: str = "",
        exchange: str = "",
        routing_key: str = "",
        nowait: bool = False,
        arguments: Table | None = None,
    ) -> None:
        self.queue = queue
        self.exchange = exchange
        self.routing_key = routing_key
        self.nowait = nowait
        self.arguments = {} if arguments is None else arguments

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> QueueBind:
        try:
            at += 2
            queue, at = read_short(data, at)
            exchange, at = read_short(data, at)
            routing_key, at = read_short(data, at)
            bits = data[at]
            at += 1
            arguments, at = read_table(data, at, end)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(queue, exchange, routing_key, bits & 1 != 0, arguments)

    def encode(self) -> bytes:
        return (
            b"\x00\x32\x00\x14\x00\x00"
            + short(self.queue)
            + short(self.exchange)
            + short(self.routing_key)
            + ONE[self.nowait]
            + encode_table(self.arguments)
        )


class QueueBindOk(Method):
    __slots__ = ()

    id = 0x00320015
    name = "queue.bind-ok"
    from_server = True
    from_client = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> QueueBindOk:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x32\x00\x15"


class QueuePurge(Method):
    __slots__ = ("nowait", "queue")

    id = 0x0032001E
    name = "queue.purge"
    synchronous = True

    def __init__(self, queue: str = "", nowait: bool = False) -> None:
        self.queue = queue
        self.nowait = nowait

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> QueuePurge:
        try:
            at += 2
            queue, at = read_short(data, at)
            bits = data[at]
            at += 1
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(queue, bits & 1 != 0)

    def encode(self) -> bytes:
        return b"\x00\x32\x00\x1e\x00\x00" + short(self.queue) + ONE[self.nowait]


class QueuePurgeOk(Method):
    __slots__ = ("message_count",)

    id = 0x0032001F
    name = "queue.purge-ok"
    from_server = True
    from_client = False

    def __init__(self, message_count: int = 0) -> None:
        self.message_count = message_count

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> QueuePurgeOk:
        if end - at != 4:
            raise malformed(cls)
        (message_count,) = S_I.unpack_from(data, at)
        return cls(message_count)

    def encode(self) -> bytes:
        return S_II.pack(0x0032001F, self.message_count)


class QueueDelete(Method):
    __slots__ = ("if_empty", "if_unused", "nowait", "queue")

    id = 0x00320028
    name = "queue.delete"
    synchronous = True

    def __init__(self, queue: str = "", if_unused: bool = False, if_empty: bool = False, nowait: bool = False) -> None:
        self.queue = queue
        self.if_unused = if_unused
        self.if_empty = if_empty
        self.nowait = nowait

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> QueueDelete:
        try:
            at += 2
            queue, at = read_short(data, at)
            bits = data[at]
            at += 1
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(queue, bits & 1 != 0, bits & 2 != 0, bits & 4 != 0)

    def encode(self) -> bytes:
        return (
            b"\x00\x32\x00\x28\x00\x00"
            + short(self.queue)
            + ONE[self.if_unused | self.if_empty << 1 | self.nowait << 2]
        )


class QueueDeleteOk(Method):
    __slots__ = ("message_count",)

    id = 0x00320029
    name = "queue.delete-ok"
    from_server = True
    from_client = False

    def __init__(self, message_count: int = 0) -> None:
        self.message_count = message_count

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> QueueDeleteOk:
        if end - at != 4:
            raise malformed(cls)
        (message_count,) = S_I.unpack_from(data, at)
        return cls(message_count)

    def encode(self) -> bytes:
        return S_II.pack(0x00320029, self.message_count)


class QueueUnbind(Method):
    __slots__ = ("arguments", "exchange", "queue", "routing_key")

    id = 0x00320032
    name = "queue.unbind"
    synchronous = True

    def __init__(
        self, queue: str = "", exchange: str = "", routing_key: str = "", arguments: Table | None = None
    ) -> None:
        self.queue = queue
        self.exchange = exchange
        self.routing_key = routing_key
        self.arguments = {} if arguments is None else arguments

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> QueueUnbind:
        try:
            at += 2
            queue, at = read_short(data, at)
            exchange, at = read_short(data, at)
            routing_key, at = read_short(data, at)
            arguments, at = read_table(data, at, end)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(queue, exchange, routing_key, arguments)

    def encode(self) -> bytes:
        return (
            b"\x00\x32\x00\x32\x00\x00"
            + short(self.queue)
            + short(self.exchange)
            + short(self.routing_key)
            + encode_table(self.arguments)
        )


class QueueUnbindOk(Method):
    __slots__ = ()

    id = 0x00320033
    name = "queue.unbind-ok"
    from_server = True
    from_client = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> QueueUnbindOk:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x32\x00\x33"


class BasicQos(Method):
    __slots__ = ("global_", "prefetch_count", "prefetch_size")

    id = 0x003C000A
    name = "basic.qos"
    synchronous = True

    def __init__(self, prefetch_size: int = 0, prefetch_count: int = 0, global_: bool = False) -> None:
        self.prefetch_size = prefetch_size
        self.prefetch_count = prefetch_count
        self.global_ = global_

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicQos:
        if end - at != 7:
            raise malformed(cls)
        prefetch_size, prefetch_count, bits = S_IHB.unpack_from(data, at)
        return cls(prefetch_size, prefetch_count, bits & 1 != 0)

    def encode(self) -> bytes:
        return S_IIHB.pack(0x003C000A, self.prefetch_size, self.prefetch_count, self.global_)


class BasicQosOk(Method):
    __slots__ = ()

    id = 0x003C000B
    name = "basic.qos-ok"
    from_server = True
    from_client = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicQosOk:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x3c\x00\x0b"


class BasicConsume(Method):
    __slots__ = ("arguments", "consumer_tag", "exclusive", "no_ack", "no_local", "nowait", "queue")

    id = 0x003C0014
    name = "basic.consume"
    synchronous = True

    def __init__(
        self,
        queue: str = "",
        consumer_tag: str = "",
        no_local: bool = False,
        no_ack: bool = False,
        exclusive: bool = False,
        nowait: bool = False,
        arguments: Table | None = None,
    ) -> None:
        self.queue = queue
        self.consumer_tag = consumer_tag
        self.no_local = no_local
        self.no_ack = no_ack
        self.exclusive = exclusive
        self.nowait = nowait
        self.arguments = {} if arguments is None else arguments

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicConsume:
        try:
            at += 2
            queue, at = read_short(data, at)
            consumer_tag, at = read_short(data, at)
            bits = data[at]
            at += 1
            arguments, at = read_table(data, at, end)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(queue, consumer_tag, bits & 1 != 0, bits & 2 != 0, bits & 4 != 0, bits & 8 != 0, arguments)

    def encode(self) -> bytes:
        return (
            b"\x00\x3c\x00\x14\x00\x00"
            + short(self.queue)
            + short(self.consumer_tag)
            + ONE[self.no_local | self.no_ack << 1 | self.exclusive << 2 | self.nowait << 3]
            + encode_table(self.arguments)
        )


class BasicConsumeOk(Method):
    __slots__ = ("consumer_tag",)

    id = 0x003C0015
    name = "basic.consume-ok"
    from_server = True
    from_client = False

    def __init__(self, consumer_tag: str = "") -> None:
        self.consumer_tag = consumer_tag

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicConsumeOk:
        try:
            consumer_tag, at = read_short(data, at)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(consumer_tag)

    def encode(self) -> bytes:
        return b"\x00\x3c\x00\x15" + short(self.consumer_tag)


class BasicCancel(Method):
    __slots__ = ("consumer_tag", "nowait")

    id = 0x003C001E
    name = "basic.cancel"
    synchronous = True
    from_server = True

    def __init__(self, consumer_tag: str = "", nowait: bool = False) -> None:
        self.consumer_tag = consumer_tag
        self.nowait = nowait

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicCancel:
        try:
            consumer_tag, at = read_short(data, at)
            bits = data[at]
            at += 1
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(consumer_tag, bits & 1 != 0)

    def encode(self) -> bytes:
        return b"\x00\x3c\x00\x1e" + short(self.consumer_tag) + ONE[self.nowait]


class BasicCancelOk(Method):
    __slots__ = ("consumer_tag",)

    id = 0x003C001F
    name = "basic.cancel-ok"
    from_server = True

    def __init__(self, consumer_tag: str = "") -> None:
        self.consumer_tag = consumer_tag

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicCancelOk:
        try:
            consumer_tag, at = read_short(data, at)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(consumer_tag)

    def encode(self) -> bytes:
        return b"\x00\x3c\x00\x1f" + short(self.consumer_tag)


class BasicPublish(Method):
    __slots__ = ("exchange", "immediate", "mandatory", "routing_key")

    id = 0x003C0028
    name = "basic.publish"
    content = True

    def __init__(
        self, exchange: str = "", routing_key: str = "", mandatory: bool = False, immediate: bool = False
    ) -> None:
        self.exchange = exchange
        self.routing_key = routing_key
        self.mandatory = mandatory
        self.immediate = immediate

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicPublish:
        try:
            at += 2
            exchange, at = read_loose_short(data, at)
            routing_key, at = read_loose_short(data, at)
            bits = data[at]
            at += 1
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(exchange, routing_key, bits & 1 != 0, bits & 2 != 0)

    def encode(self) -> bytes:
        return (
            b"\x00\x3c\x00\x28\x00\x00"
            + short(self.exchange)
            + short(self.routing_key)
            + ONE[self.mandatory | self.immediate << 1]
        )


class BasicReturn(Method):
    __slots__ = ("exchange", "reply_code", "reply_text", "routing_key")

    id = 0x003C0032
    name = "basic.return"
    content = True
    from_server = True
    from_client = False

    def __init__(self, reply_code: int = 0, reply_text: str = "", exchange: str = "", routing_key: str = "") -> None:
        self.reply_code = reply_code
        self.reply_text = reply_text
        self.exchange = exchange
        self.routing_key = routing_key

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicReturn:
        try:
            (reply_code,) = S_H.unpack_from(data, at)
            at += 2
            reply_text, at = read_loose_short(data, at)
            exchange, at = read_loose_short(data, at)
            routing_key, at = read_loose_short(data, at)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(reply_code, reply_text, exchange, routing_key)

    def encode(self) -> bytes:
        return (
            S_IH.pack(0x003C0032, self.reply_code)
            + short(self.reply_text)
            + short(self.exchange)
            + short(self.routing_key)
        )


class BasicDeliver(Method):
    __slots__ = ("consumer_tag", "delivery_tag", "exchange", "redelivered", "routing_key")

    id = 0x003C003C
    name = "basic.deliver"
    content = True
    from_server = True
    from_client = False

    def __init__(
        self,
        consumer_tag: str = "",
        delivery_tag: int = 0,
        redelivered: bool = False,
        exchange: str = "",
        routing_key: str = "",
    ) -> None:
        self.consumer_tag = consumer_tag
        self.delivery_tag = delivery_tag
        self.redelivered = redelivered
        self.exchange = exchange
        self.routing_key = routing_key

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicDeliver:
        try:
            consumer_tag, at = read_loose_short(data, at)
            delivery_tag, bits = S_QB.unpack_from(data, at)
            at += 9
            exchange, at = read_loose_short(data, at)
            routing_key, at = read_loose_short(data, at)
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(consumer_tag, delivery_tag, bits & 1 != 0, exchange, routing_key)

    def encode(self) -> bytes:
        return (
            b"\x00\x3c\x00\x3c"
            + short(self.consumer_tag)
            + S_QB.pack(self.delivery_tag, self.redelivered)
            + short(self.exchange)
            + short(self.routing_key)
        )


class BasicGet(Method):
    __slots__ = ("no_ack", "queue")

    id = 0x003C0046
    name = "basic.get"
    synchronous = True

    def __init__(self, queue: str = "", no_ack: bool = False) -> None:
        self.queue = queue
        self.no_ack = no_ack

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicGet:
        try:
            at += 2
            queue, at = read_short(data, at)
            bits = data[at]
            at += 1
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(queue, bits & 1 != 0)

    def encode(self) -> bytes:
        return b"\x00\x3c\x00\x46\x00\x00" + short(self.queue) + ONE[self.no_ack]


class BasicGetOk(Method):
    __slots__ = ("delivery_tag", "exchange", "message_count", "redelivered", "routing_key")

    id = 0x003C0047
    name = "basic.get-ok"
    content = True
    from_server = True
    from_client = False

    def __init__(
        self,
        delivery_tag: int = 0,
        redelivered: bool = False,
        exchange: str = "",
        routing_key: str = "",
        message_count: int = 0,
    ) -> None:
        self.delivery_tag = delivery_tag
        self.redelivered = redelivered
        self.exchange = exchange
        self.routing_key = routing_key
        self.message_count = message_count

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicGetOk:
        try:
            delivery_tag, bits = S_QB.unpack_from(data, at)
            at += 9
            exchange, at = read_loose_short(data, at)
            routing_key, at = read_loose_short(data, at)
            (message_count,) = S_I.unpack_from(data, at)
            at += 4
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls(delivery_tag, bits & 1 != 0, exchange, routing_key, message_count)

    def encode(self) -> bytes:
        return (
            S_IQB.pack(0x003C0047, self.delivery_tag, self.redelivered)
            + short(self.exchange)
            + short(self.routing_key)
            + S_I.pack(self.message_count)
        )


class BasicGetEmpty(Method):
    __slots__ = ()

    id = 0x003C0048
    name = "basic.get-empty"
    from_server = True
    from_client = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicGetEmpty:
        try:
            at += 1 + data[at]
        except READ_ERRORS as error:
            raise malformed(cls, error) from None
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x3c\x00\x48\x00"


class BasicAck(Method):
    __slots__ = ("delivery_tag", "multiple")

    id = 0x003C0050
    name = "basic.ack"
    from_server = True

    def __init__(self, delivery_tag: int = 0, multiple: bool = False) -> None:
        self.delivery_tag = delivery_tag
        self.multiple = multiple

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicAck:
        if end - at != 9:
            raise malformed(cls)
        delivery_tag, bits = S_QB.unpack_from(data, at)
        return cls(delivery_tag, bits & 1 != 0)

    def encode(self) -> bytes:
        return S_IQB.pack(0x003C0050, self.delivery_tag, self.multiple)


class BasicReject(Method):
    __slots__ = ("delivery_tag", "requeue")

    id = 0x003C005A
    name = "basic.reject"

    def __init__(self, delivery_tag: int = 0, requeue: bool = True) -> None:
        self.delivery_tag = delivery_tag
        self.requeue = requeue

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicReject:
        if end - at != 9:
            raise malformed(cls)
        delivery_tag, bits = S_QB.unpack_from(data, at)
        return cls(delivery_tag, bits & 1 != 0)

    def encode(self) -> bytes:
        return S_IQB.pack(0x003C005A, self.delivery_tag, self.requeue)


class BasicRecoverAsync(Method):
    __slots__ = ("requeue",)

    id = 0x003C0064
    name = "basic.recover-async"

    def __init__(self, requeue: bool = False) -> None:
        self.requeue = requeue

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicRecoverAsync:
        if end - at != 1:
            raise malformed(cls)
        bits = data[at]
        return cls(bits & 1 != 0)

    def encode(self) -> bytes:
        return b"\x00\x3c\x00\x64" + ONE[self.requeue]


class BasicRecover(Method):
    __slots__ = ("requeue",)

    id = 0x003C006E
    name = "basic.recover"
    synchronous = True

    def __init__(self, requeue: bool = False) -> None:
        self.requeue = requeue

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicRecover:
        if end - at != 1:
            raise malformed(cls)
        bits = data[at]
        return cls(bits & 1 != 0)

    def encode(self) -> bytes:
        return b"\x00\x3c\x00\x6e" + ONE[self.requeue]


class BasicRecoverOk(Method):
    __slots__ = ()

    id = 0x003C006F
    name = "basic.recover-ok"
    from_server = True
    from_client = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicRecoverOk:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x3c\x00\x6f"


class BasicNack(Method):
    __slots__ = ("delivery_tag", "multiple", "requeue")

    id = 0x003C0078
    name = "basic.nack"
    from_server = True

    def __init__(self, delivery_tag: int = 0, multiple: bool = False, requeue: bool = True) -> None:
        self.delivery_tag = delivery_tag
        self.multiple = multiple
        self.requeue = requeue

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> BasicNack:
        if end - at != 9:
            raise malformed(cls)
        delivery_tag, bits = S_QB.unpack_from(data, at)
        return cls(delivery_tag, bits & 1 != 0, bits & 2 != 0)

    def encode(self) -> bytes:
        return S_IQB.pack(0x003C0078, self.delivery_tag, self.multiple | self.requeue << 1)


class ConfirmSelect(Method):
    __slots__ = ("nowait",)

    id = 0x0055000A
    name = "confirm.select"
    synchronous = True

    def __init__(self, nowait: bool = False) -> None:
        self.nowait = nowait

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ConfirmSelect:
        if end - at != 1:
            raise malformed(cls)
        bits = data[at]
        return cls(bits & 1 != 0)

    def encode(self) -> bytes:
        return b"\x00\x55\x00\x0a" + ONE[self.nowait]


class ConfirmSelectOk(Method):
    __slots__ = ()

    id = 0x0055000B
    name = "confirm.select-ok"
    from_server = True
    from_client = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> ConfirmSelectOk:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x55\x00\x0b"


class TxSelect(Method):
    __slots__ = ()

    id = 0x005A000A
    name = "tx.select"
    synchronous = True

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> TxSelect:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x5a\x00\x0a"


class TxSelectOk(Method):
    __slots__ = ()

    id = 0x005A000B
    name = "tx.select-ok"
    from_server = True
    from_client = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> TxSelectOk:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x5a\x00\x0b"


class TxCommit(Method):
    __slots__ = ()

    id = 0x005A0014
    name = "tx.commit"
    synchronous = True

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> TxCommit:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x5a\x00\x14"


class TxCommitOk(Method):
    __slots__ = ()

    id = 0x005A0015
    name = "tx.commit-ok"
    from_server = True
    from_client = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> TxCommitOk:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x5a\x00\x15"


class TxRollback(Method):
    __slots__ = ()

    id = 0x005A001E
    name = "tx.rollback"
    synchronous = True

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> TxRollback:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x5a\x00\x1e"


class TxRollbackOk(Method):
    __slots__ = ()

    id = 0x005A001F
    name = "tx.rollback-ok"
    from_server = True
    from_client = False

    @classmethod
    def decode(cls, data: bytes, at: int, end: int) -> TxRollbackOk:
        if at != end:
            raise malformed(cls)
        return cls()

    def encode(self) -> bytes:
        return b"\x00\x5a\x00\x1f"


METHODS: dict[int, type[Method]] = {
    ConnectionStart.id: ConnectionStart,
    ConnectionStartOk.id: ConnectionStartOk,
    ConnectionSecure.id: ConnectionSecure,
    ConnectionSecureOk.id: ConnectionSecureOk,
    ConnectionTune.id: ConnectionTune,
    ConnectionTuneOk.id: ConnectionTuneOk,
    ConnectionOpen.id: ConnectionOpen,
    ConnectionOpenOk.id: ConnectionOpenOk,
    ConnectionClose.id: ConnectionClose,
    ConnectionCloseOk.id: ConnectionCloseOk,
    ConnectionBlocked.id: ConnectionBlocked,
    ConnectionUnblocked.id: ConnectionUnblocked,
    ConnectionUpdateSecret.id: ConnectionUpdateSecret,
    ConnectionUpdateSecretOk.id: ConnectionUpdateSecretOk,
    ChannelOpen.id: ChannelOpen,
    ChannelOpenOk.id: ChannelOpenOk,
    ChannelFlow.id: ChannelFlow,
    ChannelFlowOk.id: ChannelFlowOk,
    ChannelClose.id: ChannelClose,
    ChannelCloseOk.id: ChannelCloseOk,
    AccessRequest.id: AccessRequest,
    AccessRequestOk.id: AccessRequestOk,
    ExchangeDeclare.id: ExchangeDeclare,
    ExchangeDeclareOk.id: ExchangeDeclareOk,
    ExchangeDelete.id: ExchangeDelete,
    ExchangeDeleteOk.id: ExchangeDeleteOk,
    ExchangeBind.id: ExchangeBind,
    ExchangeBindOk.id: ExchangeBindOk,
    ExchangeUnbind.id: ExchangeUnbind,
    ExchangeUnbindOk.id: ExchangeUnbindOk,
    QueueDeclare.id: QueueDeclare,
    QueueDeclareOk.id: QueueDeclareOk,
    QueueBind.id: QueueBind,
    QueueBindOk.id: QueueBindOk,
    QueuePurge.id: QueuePurge,
    QueuePurgeOk.id: QueuePurgeOk,
    QueueDelete.id: QueueDelete,
    QueueDeleteOk.id: QueueDeleteOk,
    QueueUnbind.id: QueueUnbind,
    QueueUnbindOk.id: QueueUnbindOk,
    BasicQos.id: BasicQos,
    BasicQosOk.id: BasicQosOk,
    BasicConsume.id: BasicConsume,
    BasicConsumeOk.id: BasicConsumeOk,
    BasicCancel.id: BasicCancel,
    BasicCancelOk.id: BasicCancelOk,
    BasicPublish.id: BasicPublish,
    BasicReturn.id: BasicReturn,
    BasicDeliver.id: BasicDeliver,
    BasicGet.id: BasicGet,
    BasicGetOk.id: BasicGetOk,
    BasicGetEmpty.id: BasicGetEmpty,
    BasicAck.id: BasicAck,
    BasicReject.id: BasicReject,
    BasicRecoverAsync.id: BasicRecoverAsync,
    BasicRecover.id: BasicRecover,
    BasicRecoverOk.id: BasicRecoverOk,
    BasicNack.id: BasicNack,
    ConfirmSelect.id: ConfirmSelect,
    ConfirmSelectOk.id: ConfirmSelectOk,
    TxSelect.id: TxSelect,
    TxSelectOk.id: TxSelectOk,
    TxCommit.id: TxCommit,
    TxCommitOk.id: TxCommitOk,
    TxRollback.id: TxRollback,
    TxRollbackOk.id: TxRollbackOk,
}


def decode(data: bytes, at: int, end: int) -> Method:
    """The method in data[at:end], the payload of a method frame."""
    if end - at < 4:
        raise unknown_method(0)
    (number,) = SIZE.unpack_from(data, at)
    method = METHODS.get(number)
    if method is None:
        raise unknown_method(number)
    return method.decode(data, at + 4, end)
