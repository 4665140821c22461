"""Who is at the other end of a socket: its addresses, and the names in a certificate that was checked."""

from asyncio import BaseTransport
from typing import Final

from interlog.faces.face import Peer

_RelativeNames = tuple[tuple[tuple[str, str], ...], ...]

_SHORT: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}


def peer_of(transport: BaseTransport) -> Peer:
    remote, local = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
    if not isinstance(remote, tuple) or not isinstance(local, tuple):
        return Peer()
    certificate = transport.get_extra_info("peercert")
    return Peer(
        address=f"{remote[0]}:{remote[1]}",
        host=remote[0],
        port=remote[1],
        loopback=_is_loopback(remote[0]),
        local_host=local[0],
        local_port=local[1],
        tls=transport.get_extra_info("sslcontext") is not None,
        certificate=_names(certificate) if certificate else (),
    )


def _is_loopback(host: str) -> bool:
    return host == "::1" or host.removeprefix("::ffff:").startswith("127.")


def _names(certificate: dict[str, _RelativeNames]) -> tuple[str, ...]:
    """The common name first, then the alternative names, then the whole subject as RFC 4514 writes it."""
    subject = certificate.get("subject", ())
    common = [value for part in subject for key, value in part if key == "commonName"]
    others = [str(value) for _, value in certificate.get("subjectAltName", ())]
    whole = [_distinguished(subject)] if subject else []
    return tuple(dict.fromkeys(common + others + whole))


def _distinguished(subject: _RelativeNames) -> str:
    parts = ("+".join(f"{_SHORT.get(key, key)}={_escaped(value)}" for key, value in part) for part in subject)
    return ",".join(reversed(list(parts)))


def _escaped(value: str) -> str:
    text = "".join(f"\\{one}" if one in ',+"\\<>;' else one for one in value).replace("\0", "\\00")
    if text.startswith((" ", "#")):
        text = "\\" + text
    if value.endswith(" ") and len(value) > 1:
        text = text[:-1] + "\\ "
    return text
