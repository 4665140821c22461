"""Who is at the other end of a socket: its addresses, and the names in a certificate that was checked."""

from asyncio import BaseTransport

from interlog.faces.face import Peer


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
        tls=transport.get_extra_info("ssl_object") is not None,
        certificate=_names(certificate) if certificate else (),
    )


def _is_loopback(host: str) -> bool:
    return host == "::1" or host.removeprefix("::ffff:").startswith("127.")


def _names(certificate: dict[str, tuple[tuple[tuple[str, str], ...], ...]]) -> tuple[str, ...]:
    """The common name first, then the alternative names."""
    common = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    others = [str(value) for _, value in certificate.get("subjectAltName", ())]
    return tuple(dict.fromkeys(common + others))
