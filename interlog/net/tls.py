"""TLS: certificates from files, told in sentences what is wrong with them.

Comes in: the names of the broker's certificate, its key, and of the authority that signs clients' certificates. Goes
out: what a listener needs to accept TLS. `reload` reads certificate and key again; connections that are open stay as
they are. TLS 1.2 is the oldest that is spoken.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

from interlog.base.errors import InterlogError

if TYPE_CHECKING:
    import ssl

HANDSHAKE_SECONDS = 10.0
GOODBYE_SECONDS = 2.0


class TlsError(InterlogError):
    """A certificate cannot be used: names the file, says why and what to do."""


class Tls:
    """Certificates in use."""

    def __init__(
        self, certificate: Path, key: Path | None, ca: Path | None, client: Literal["off", "optional", "required"]
    ) -> None:
        import ssl  # only a broker with a TLS port pays for it

        self._certificate = certificate
        self._key = key
        self.context = context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        self._load(context)
        if client != "off":
            context.verify_mode = ssl.CERT_REQUIRED if client == "required" else ssl.CERT_OPTIONAL
            if ca is None:
                raise TlsError("Clients' certificates cannot be checked without tls_ca: the file of who signs them.")
            try:
                context.load_verify_locations(ca)
            except OSError as error:
                raise TlsError(f"The certificates of tls_ca, {ca}, cannot be used: {_reason(error)}.") from None

    def reload(self) -> None:
        """Use what the files hold now; TlsError, and nothing changed, if that cannot be used."""
        import ssl

        self._load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        self._load(self.context)

    def _load(self, context: "ssl.SSLContext") -> None:
        try:
            context.load_cert_chain(self._certificate, self._key, password=_no_password)
        except OSError as error:
            self._refuse(error)

    def _refuse(self, error: OSError) -> NoReturn:
        names = f"The certificate {self._certificate}"
        if self._key is not None:
            names += f" with the key {self._key}"
        raise TlsError(f"{names} cannot be used: {_reason(error)}.") from None


def _no_password() -> NoReturn:
    raise TlsError("The key of tls_key is encrypted. Give one that is not, in a file that only the broker can read.")


def _reason(error: OSError) -> str:
    import ssl

    match error:
        case ssl.SSLError(reason="KEY_VALUES_MISMATCH"):
            return "the key belongs to another certificate"
        case ssl.SSLError(reason="NO_CERTIFICATE_OR_CRL_FOUND" | "NO_START_LINE"):
            return "it holds no certificate in PEM form"
        case ssl.SSLError(reason=reason) if reason:
            return reason.replace("_", " ").lower()
        case ssl.SSLError():
            return "a file is not in PEM form, or holds no key (tls_key names the file that does)"
        case _:
            return f"{error.strerror}" + (f" ({error.filename})" if error.filename else "")
