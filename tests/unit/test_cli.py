"""What a person types, and what comes back: words, sentences, exit codes."""

import os
from pathlib import Path

import pytest

from interlog.app.cli import main as cli
from interlog.app.settings import table
from interlog.base.version import VERSION
from tests.served import Run, Serve


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"interlog {VERSION}\n"


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    for command, help in cli.COMMANDS.items():
        assert command in out
        assert help in out
    assert cli.main([]) == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize("command", sorted(cli.COMMANDS))
def test_each_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    assert f"interlog {command}" in capsys.readouterr().out


def test_serve_explains_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["serve", "--help"])
    out = capsys.readouterr().out
    for row in table():
        assert row.flag in out


def test_another_system_is_refused_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(os, "posix_fallocate")
    assert cli.main(["serve"]) == 1
    assert capsys.readouterr().err.startswith("interlog: Interlog runs on Linux only so far")


def test_an_unknown_command_is_told_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sevre"]) == 2
    assert "'sevre' is not a command. Did you mean serve? There is: serve" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--rocketmq-port", "8081"], "rocketmq_port = '8081' (from the flag --rocketmq-port) cannot be served"),
        (["--http-port", "1e3"], "http_port = '1e3' (from the flag --http-port) must be 0"),
        (["--config", "none.toml"], "The settings file none.toml does not exist."),
    ],
)
def test_a_wrong_setting_is_a_sentence_and_two(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["serve", *words]) == 2
    assert capsys.readouterr().err.startswith(f"interlog: {sentence}")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["serve", "--amqp-prot", "1"], "unrecognized arguments: --amqp-prot 1. Did you mean --amqp-port?"),
        (["serve", "more"], "unrecognized arguments: more. `interlog serve --help` explains what there is."),
        (["users"], "`interlog users`: say what it is to do. There is: list, add, password, tags, delete."),
        (["users", "ad", "ann"], "`interlog users`: 'ad' is nothing that it does. Did you mean add? There is: list"),
        (["status", "--url"], "argument --url: expected one argument."),
    ],
)
def test_a_wrong_line_is_a_sentence_and_two(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"interlog: {sentence}")


def test_flags_are_never_abbreviated(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["serve", "--http", "1"])
    assert ended.value.code == 2


def test_the_environment_and_its_file_are_read(interlog: Run, tmp_path: Path) -> None:
    config = tmp_path / "mine.toml"
    config.write_text("http_port = 'x'")
    ended = interlog("serve", environment={"INTERLOG_CONFIG": str(config)})
    assert ended.returncode == 2
    assert str(config) in ended.stderr
    ended = interlog("serve", environment={"INTERLOG_HTTP_PRT": "1"})
    assert ended.returncode == 2
    assert "Did you mean INTERLOG_HTTP_PORT?" in ended.stderr


def test_verify_of_no_folder_is_a_sentence(interlog: Run) -> None:
    ended = interlog("verify", "--data", "nowhere")
    assert ended.returncode == 1
    assert "There is no data folder" in ended.stderr


def test_a_folder_left_by_a_broker_is_sound(interlog: Run, serve: Serve, tmp_path: Path) -> None:
    served = serve()
    served.addresses()
    served.process.terminate()
    served.end()
    ended = interlog("verify", "--data", str(tmp_path / "data"))
    assert ended.returncode == 0, ended
    assert ended.stdout


def test_the_folder_to_verify_is_named_once(interlog: Run, tmp_path: Path) -> None:
    assert "There is no data folder" in interlog("verify", "nowhere").stderr
    ended = interlog("verify", "one", "--data", "two")
    assert ended.returncode == 2
    assert "name the data folder once" in ended.stderr
    (tmp_path / "empty").mkdir()
    assert "is not a data folder" in interlog("verify", "empty").stderr


def test_status_asks_a_running_broker(interlog: Run, serve: Serve) -> None:
    address = serve().addresses()["http"]
    ended = interlog("status", "--url", address)
    assert ended.returncode == 0, ended
    assert VERSION in ended.stdout
    assert '"durability": "sync"' in interlog("status", "--json", "--url", f"http://{address}").stdout


def test_status_of_no_broker_is_a_sentence(interlog: Run) -> None:
    ended = interlog("status", "--url", "127.0.0.1:1")
    assert ended.returncode == 1
    assert "No broker answers at http://127.0.0.1:1/status" in ended.stderr
    assert "Connection refused. Is it running? `interlog serve` starts one" in ended.stderr


@pytest.mark.parametrize("words", [("status",), ("users", "list")], ids=" ".join)
def test_a_port_that_speaks_something_else_is_a_sentence(interlog: Run, serve: Serve, words: tuple[str, ...]) -> None:
    ended = interlog(*words, "--url", serve().addresses()["amqp"])
    assert ended.returncode == 1
    assert "does not speak HTTP" in ended.stderr
    assert "it begins with http:// or https://" in interlog(*words, "--url", "ftp://127.0.0.1").stderr
