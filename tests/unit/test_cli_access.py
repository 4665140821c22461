"""`interlog users`, `vhosts` and `permissions` against a broker that runs."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from interlog.app.cli import main as cli
from interlog.app.cli.client import printable, table
from tests.certificates import certificates_in
from tests.served import Run, Serve

Says = Callable[..., tuple[int, str, str]]


@pytest.fixture
def says(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Says:
    """Runs a command in this process: its exit code, its output, its errors."""
    for name in ("URL", "USER", "PASSWORD"):
        monkeypatch.delenv(f"INTERLOG_{name}", raising=False)

    def run(*words: str, typed: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        code = cli.main(words)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()]


def test_a_team_gets_its_own_corner(serve: Serve, says: Says, monkeypatch: pytest.MonkeyPatch) -> None:
    url = serve().addresses()["http"]
    monkeypatch.setenv("INTERLOG_URL", url)
    code, out, _ = says("users", "list")
    assert (code, rows(out)) == (0, [["user", "tags", "password"], ["guest", "administrator", "yes"]])

    assert says("users", "add", "ann", "secret", "--tags", "monitoring,management")[0] == 0
    code, _, err = says("users", "add", "ann", "other")
    assert (code, "There is a user ann already" in err) == (1, True)
    assert says("users", "add", "bob", typed="typed\n")[0] == 0
    assert says("users", "add", "robot", "--no-password")[0] == 0
    assert rows(says("users", "list")[1])[1:] == [
        ["ann", "monitoring,", "management", "yes"],
        ["bob", "-", "yes"],
        ["guest", "administrator", "yes"],
        ["robot", "-", "no", "(certificate)"],
    ]

    assert says("vhosts", "add", "team/a", "--description", "of team a")[0] == 0
    assert rows(says("vhosts", "list")[1]) == [["vhost", "description"], ["/", "-"], ["team/a", "of", "team", "a"]]
    assert says("permissions", "set", "bob", "^a", "", "--vhost", "team/a")[0] == 0
    assert rows(says("permissions", "list")[1])[1:] == [
        ["/", "guest", ".*", ".*", ".*"],
        ["team/a", "bob", "^a", "(nothing)", ".*"],
        ["team/a", "guest", ".*", ".*", ".*"],
    ]
    assert json.loads(says("permissions", "list", "--json")[1])[1]["configure"] == "^a"
    code, _, err = says("permissions", "set", "bob", "(")
    assert (code, "not a regular expression" in err) == (1, True)
    assert says("permissions", "clear", "bob", "--vhost", "team/a")[0] == 0
    code, _, err = says("permissions", "clear", "bob", "--vhost", "team/a")
    assert (code, "has no permissions" in err) == (1, True)

    # ann may look, and change nothing; a password and tags can be changed without each other
    mine = ("--user", "ann", "--password")
    assert says("vhosts", "list", *mine, "secret")[0] == 0
    code, _, err = says("users", "list", *mine, "secret")
    assert (code, "needs the tag administrator" in err, "You are ann" in err) == (1, True, True)
    assert says("users", "password", "ann", typed="new\n")[0] == 0
    assert "user name or the password is wrong" in says("vhosts", "list", *mine, "secret")[2]
    assert says("users", "tags", "ann", "administrator")[0] == 0
    assert says("users", "list", *mine, "new")[0] == 0
    assert says(*mine, "new", "users")[0] == 2
    assert says("users", "tags", "ann")[0] == 0
    assert says("users", "list", *mine, "new")[0] == 1

    words = ("policies", "set", "short", "^tmp", "max-length=10", "overflow=reject-publish", "--apply-to", "queues")
    assert says(*words, "--priority", "2")[0] == 0
    assert rows(says("policies", "list")[1])[1:] == [
        ["/", "short", "^tmp", "queues", "2", "max-length=10", "overflow=reject-publish"]
    ]
    assert says("policies", "set", "short", "^tmp", '{"max-length": 11}')[0] == 0
    assert "max-length=11" in says("policies", "list")[1]
    for wrong in ("max-length", "max-length=x", "{", "nonsense=1"):
        assert says("policies", "set", "p", "", wrong)[0] == 1
    assert says("policies", "clear", "short")[0] == 0
    assert says("policies", "clear", "short")[0] == 1

    code, _, err = says("vhosts", "delete", "team/a")
    assert (code, "Add --yes if it is meant" in err) == (1, True)
    assert says("vhosts", "delete", "team/a", "--yes")[0] == 0
    assert "no vhost team/a. `interlog vhosts list`" in says("vhosts", "delete", "team/a", "--yes")[2]
    assert says("users", "delete", "bob")[0] == 0
    assert "no user bob" in says("users", "password", "bob", "x")[2]
    assert "no user bob" in says("users", "tags", "bob", "x")[2]


def test_users_outlast_the_broker_and_deleted_ones_stay_deleted(serve: Serve, says: Says) -> None:
    served = serve("--default-user", "root", "--loopback-users", "none")
    as_root = ("--user", "root", "--password", "guest", "--url")
    url = served.addresses()["http"]
    assert says("users", "add", "ann", "x", "--tags", "administrator", *as_root, url)[0] == 0
    assert says("users", "delete", "root", "--url", url, "--user", "ann", "--password", "x")[0] == 0
    served.process.kill()  # what was answered lasts
    served.end()
    url = serve().addresses()["http"]
    assert says("users", "list", *as_root, url)[0] == 1
    code, out, _ = says("users", "list", "--url", url, "--user", "ann", "--password", "x")
    assert (code, rows(out)[1:]) == (0, [["ann", "administrator", "yes"]])


def test_no_broker_is_a_sentence_that_says_what_to_do(says: Says) -> None:
    code, _, err = says("users", "list", "--url", "127.0.0.1:1")
    assert code == 1
    assert err.startswith("interlog: No broker answers at http://127.0.0.1:1: ")
    assert "`interlog serve` starts one" in err


def test_the_variables_of_the_command_line_are_no_settings(serve: Serve, interlog: Run) -> None:
    variables = {"INTERLOG_URL": "127.0.0.1:1", "INTERLOG_USER": "x", "INTERLOG_PASSWORD": "y"}
    url = serve().addresses()["http"]
    ended = interlog("users", "list", "--url", url, environment=variables)
    assert (ended.returncode, "You are x" in ended.stderr) == (1, True)
    ended = interlog("serve", "--http-port", "x", environment=variables)
    assert (ended.returncode, "http_port" in ended.stderr) == (2, True)


def test_over_tls(serve: Serve, says: Says, tmp_path: Path) -> None:
    made = certificates_in(tmp_path / "made")
    certificate, key = made.make("broker")
    served = serve("--https-port", "0", "--tls-certificate", str(certificate), "--tls-key", str(key))
    url = "https://" + served.addresses()["https"]
    assert says("users", "list", "--url", url, "--ca", str(made.ca))[0] == 0
    code, _, err = says("users", "list", "--url", url)
    assert (code, "certificate" in err.lower()) == (1, True)
    assert served.process.poll() is None
    served.process.send_signal(1)  # SIGHUP: the certificate is read again
    assert says("users", "list", "--url", url, "--ca", str(made.ca))[0] == 0


def test_what_a_terminal_would_obey_is_not_printed() -> None:
    assert printable("a\x1b[2Jb\u202e") == "a\\x1b[2Jb\\x202e"
    assert table([("a", "b\n")], ("first", "second")) == "first  second\na      b\\x0a"
