"""Certificates made for a test by the openssl command: an authority, a broker, clients."""

import shutil
import subprocess
from pathlib import Path

import pytest


class Certificates:
    """Files in a folder. What is asked for twice is made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.ca = self.folder / "ca.pem"
        self._openssl(
            "req", "-x509", *_new_key(folder / "ca.key"), "-out", str(self.ca), "-days", "2", "-subj", "/CN=authority"
        )

    def make(
        self, name: str, subject: str | None = None, alternatives: str = "DNS:localhost,IP:127.0.0.1"
    ) -> tuple[Path, Path]:
        """A certificate signed by the authority, and its key."""
        certificate, key, request = (self.folder / f"{name}.{end}" for end in ("pem", "key", "csr"))
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={alternatives}\n" if alternatives else "keyUsage=digitalSignature\n")
        self._openssl("req", "-new", *_new_key(key), "-out", str(request), "-subj", subject or f"/CN={name}")
        self._openssl(
            "x509", "-req", "-in", str(request), "-CA", str(self.ca), "-CAkey", str(self.folder / "ca.key"),
            "-CAcreateserial", "-days", "2", "-extfile", str(extensions), "-out", str(certificate),
        )  # fmt: skip
        return certificate, key

    def encrypt(self, key: Path) -> Path:
        encrypted = key.with_suffix(".encrypted")
        self._openssl("pkey", "-in", str(key), "-aes256", "-passout", "pass:secret", "-out", str(encrypted))
        return encrypted

    @staticmethod
    def _openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True)


def _new_key(file: Path) -> list[str]:
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(file)]


def certificates_in(folder: Path) -> Certificates:
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command makes the certificates, and is not installed")
    return Certificates(folder)
