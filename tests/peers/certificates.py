"""Certificates for TLS tests: a CA, a server of the name localhost, and a client of the name guest. Made by openssl."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

DAYS = "30"


@dataclass(frozen=True)
class Certificates:
    ca: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path


def make(folder: Path) -> Certificates | None:
    """Those in the folder, made if they are not there; nothing where there is no openssl."""
    names = ("ca.pem", "server.pem", "server.key", "client.pem", "client.key")
    found = Certificates(*(folder / name for name in names))
    if all((folder / name).exists() for name in names):
        return found
    if shutil.which("openssl") is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    ca_key = folder / "ca.key"
    _openssl("req", "-x509", *_new(ca_key), "-days", DAYS, "-subj", "/CN=Interlog tests", "-out", str(found.ca))
    _signed(folder, found.ca, ca_key, found.server, found.server_key, "localhost", "serverAuth")
    _signed(folder, found.ca, ca_key, found.client, found.client_key, "guest", "clientAuth")
    return found


def _new(key: Path) -> list[str]:
    return ["-newkey", "rsa:2048", "-nodes", "-keyout", str(key)]


def _signed(folder: Path, ca: Path, ca_key: Path, certificate: Path, key: Path, name: str, usage: str) -> None:
    request, extensions = folder / f"{name}.csr", folder / f"{name}.ext"
    extensions.write_text(f"subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage={usage}\n")
    _openssl("req", *_new(key), "-subj", f"/CN={name}", "-out", str(request))
    words = ["x509", "-req", "-in", str(request), "-CA", str(ca), "-CAkey", str(ca_key), "-CAcreateserial"]
    _openssl(*words, "-days", DAYS, "-extfile", str(extensions), "-out", str(certificate))


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)
