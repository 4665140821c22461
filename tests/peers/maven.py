"""Jars from Maven Central, with all that they need, kept in the user's cache: only the first use fetches them."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>peers</groupId><artifactId>peers</artifactId><version>1</version>
  <dependencies>{}</dependencies>
</project>
"""
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


class NoJars(Exception):
    """They cannot be had; the message says why."""


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "interlog" / "peers"


def jars(name: str, *artifacts: str) -> Path:
    """The folder of that name with these artifacts ("group:artifact:version") in it, fetched if they are not there."""
    folder = cache() / name
    if folder.exists():
        return folder
    maven = shutil.which("mvn")
    if maven is None or shutil.which("java") is None:
        raise NoJars("Java and Maven are needed, and are not both installed here")
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache()) as made:
        dependencies = "".join(_DEPENDENCY.format(*artifact.split(":")) for artifact in artifacts)
        (Path(made) / "pom.xml").write_text(_POM.format(dependencies))
        words = ["-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars", "-DincludeScope=runtime"]
        found = subprocess.run([maven, *words], cwd=made, capture_output=True, text=True, check=False)
        if found.returncode:
            raise NoJars(f"Maven cannot fetch {', '.join(artifacts)}: {found.stdout.strip()[-400:]}")
        try:
            os.rename(Path(made) / "jars", folder)
        except OSError:
            if not folder.exists():  # somebody else was faster: all the better
                raise
    return folder
