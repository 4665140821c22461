"""The broker as a whole: a child process, and embedded in this one."""

import asyncio
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import interlog
from interlog.base.errors import FolderError, SettingError
from interlog.base.limits import FILES_BESIDE_CONNECTIONS, MAX_CONNECTIONS
from tests.served import Serve, clean_environment

HOST = "127.0.0.77"  # nobody else is there, and takes a port that was let go of


def get(address: str, path: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def lines(errors: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in errors.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serving_from_start_to_a_clean_end(serve: Serve, tmp_path: Path, number: signal.Signals) -> None:
    served = serve()
    address = served.addresses()["http"]
    assert get(address, "/health") == (200, {"status": "ok"})
    code, status = get(address, "/status")
    assert code == 200
    assert (status["data"], status["durability"], status["addresses"]) == (
        str(tmp_path / "data"),
        "sync",
        served.addresses(),
    )
    os.kill(served.process.pid, number)
    code, errors = served.end()
    assert code == 0, errors
    assert not served.ready_file.exists()
    said = lines(errors)
    assert [line["message"] for line in said if line["room"] == "app"] == [
        "data",
        "listening",
        "listening",
        "listening",
        "ready",
        "stopping",
        "stopped",
    ]
    assert {"durability": "sync", "folder": str(tmp_path / "data")}.items() <= said[0].items()
    listening = {line["protocol"]: line["address"] for line in said if line["message"] == "listening"}
    assert listening == status["addresses"]
    assert listening.keys() == {"amqp", "kafka", "http"}


def test_what_is_served_is_what_the_ready_file_says(serve: Serve) -> None:
    served = serve("--amqp-port", "off", "--kafka-port", "off", "--http-port", "off")
    assert served.addresses() == {}


def test_weaker_durability_is_said_at_start(serve: Serve) -> None:
    served = serve("--durability", "os")
    assert "power cut" in get(served.addresses()["http"], "/status")[1]["warning"]
    served.process.terminate()
    code, errors = served.end()
    assert code == 0
    assert any(line["level"] == "warning" and "power cut" in line["message"] for line in lines(errors))


def test_a_second_start_on_a_folder_refuses(serve: Serve) -> None:
    first = serve()
    first.addresses()
    code, errors = serve().end()
    assert code == 1
    assert f"is in use by process {first.process.pid}" in errors.splitlines()[-1]
    assert "Traceback" not in errors


def test_a_folder_can_be_used_again_after_a_clean_end_and_after_a_kill(serve: Serve) -> None:
    for end in (subprocess.Popen.terminate, subprocess.Popen.kill, subprocess.Popen.terminate):
        served = serve()
        assert get(served.addresses()["http"], "/health")[0] == 200
        end(served.process)
        served.end()


def test_a_port_in_use_is_told(serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, errors = serve("--http-port", str(taken.getsockname()[1])).end()
    assert code == 1
    assert "it is in use" in errors.splitlines()[-1]


def test_a_folder_that_cannot_be_made_is_told(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, errors = serve(data=tmp_path / "file" / "data").end()
    assert code == 1
    assert str(tmp_path / "file") in errors.splitlines()[-1]
    assert "Traceback" not in errors


def test_a_ready_file_that_cannot_be_written_is_told(serve: Serve, tmp_path: Path) -> None:
    code, errors = serve("--ready-file", str(tmp_path / "none" / "ready.json")).end()
    assert code == 1
    assert "cannot be written" in errors.splitlines()[-1]


def test_a_stale_ready_file_does_not_outlive_a_failed_start(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "ready-1.json").write_text("{}")
    first = serve()
    first.addresses()
    assert serve().end()[0] == 1
    assert not (tmp_path / "ready-1.json").exists()


SIGNAL_AT_ITS_WORST = """
import asyncio, signal, sys
from interlog.app.cli.main import main

worst = [signal.SIGTERM]
get_loop = asyncio.Event._get_loop


def get_loop_and_be_told(event):
    if worst:
        signal.raise_signal(worst.pop())  # an event that is about to be waited for, seen as not set
    return get_loop(event)


asyncio.Event._get_loop = get_loop_and_be_told
sys.exit(main(sys.argv[1:]))
"""


def test_a_signal_is_heard_whenever_it_comes(tmp_path: Path) -> None:
    words = [sys.executable, "-c", SIGNAL_AT_ITS_WORST, "serve", "--data", str(tmp_path / "data")]
    words += ["--amqp-port", "0", "--kafka-port", "0", "--http-port", "0"]
    ended = subprocess.run(words, env=clean_environment(), capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "stopping" in ended.stderr


def test_a_second_signal_stops_at_once(serve: Serve) -> None:
    served = serve()
    host, _, port = served.addresses()["http"].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as client:
        client.sendall(b"GET /hea")  # a request under way holds the first stop back
        # Any answer on a second connection shows that the first one's bytes have been taken in.
        assert get(f"{host}:{port}", "/health")[0] == 200
        os.kill(served.process.pid, signal.SIGTERM)
        assert served.process.stderr is not None
        while "stopping" not in served.process.stderr.readline():
            pass
        os.kill(served.process.pid, signal.SIGTERM)
        code, errors = served.end()
    assert code == 1
    assert "stopped at once" in errors


def test_a_signal_right_after_ready_stops_the_broker_cleanly(serve: Serve) -> None:
    for _ in range(5):
        served = serve()
        served.addresses()
        os.kill(served.process.pid, signal.SIGTERM)
        code, errors = served.end()
        assert code == 0, errors
        assert lines(errors)[-1]["message"] == "stopped"
        assert not served.ready_file.exists()


def open_files(pid: int) -> int:
    """How many the process may have."""
    return resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]


def test_as_many_files_as_the_system_allows(serve: Serve) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + FILES_BESIDE_CONNECTIONS
    served = serve(before=("sh", "-c", 'ulimit -Sn 256; exec "$0" "$@"'))
    served.addresses()
    assert open_files(served.process.pid) == (wanted if most == resource.RLIM_INFINITY else min(wanted, most))


def test_too_few_files_are_told_and_kept_to(serve: Serve) -> None:
    served = serve(before=("sh", "-c", 'ulimit -n 100; exec "$0" "$@"'))
    host, _, port = served.addresses()["amqp"].rpartition(":")
    with ExitStack() as stack:
        for _ in range(50):
            client = stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
            client.sendall(b"AMQP\x00\x00\x09\x01")
            assert client.recv(1) == b"\x01"
        one_more = stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
        assert one_more.recv(1) == b""
    served.process.terminate()
    code, errors = served.end()
    assert code == 0, errors
    [said] = [line for line in lines(errors) if "files open" in line["message"]]
    assert "at most 50 connections are served" in said["message"]
    assert "ulimit -n" in said["message"]


# -- embedded


def test_embedded_without_a_folder_leaves_nothing_behind() -> None:
    async def scene() -> None:
        async with interlog.Broker() as broker:
            folder = Path(broker.settings.data)
            assert folder.is_dir()
            address = broker.addresses["http"]
            assert (await asyncio.to_thread(get, address, "/health"))[0] == 200
            assert broker.core.status()
        assert not folder.exists()
        with pytest.raises(OSError, match="refused"):
            await asyncio.to_thread(socket.create_connection, ("127.0.0.1", int(address.rpartition(":")[2])))

    asyncio.run(scene())


def test_embedded_with_a_folder_keeps_it(tmp_path: Path) -> None:
    async def scene() -> None:
        for _ in range(2):
            async with interlog.Broker(tmp_path / "data") as broker:
                assert broker.settings.durability == "sync"
        assert (tmp_path / "data").is_dir()

    asyncio.run(scene())


def test_several_in_one_process(tmp_path: Path) -> None:
    async def scene() -> None:
        async with interlog.Broker() as one, interlog.Broker() as two:
            assert one.addresses["http"] != two.addresses["http"]
            with pytest.raises(FolderError, match="in use"):
                await interlog.Broker(one.settings.data).start()
            assert (await asyncio.to_thread(get, one.addresses["http"], "/health"))[0] == 200

    asyncio.run(scene())


def test_embedded_takes_settings_by_name_and_refuses_wrong_ones() -> None:
    async def scene() -> None:
        async with interlog.Broker(amqp_port="off", kafka_port="off", http_port="off", durability="sync") as broker:
            assert broker.addresses == {}

    asyncio.run(scene())
    with pytest.raises(SettingError, match="Did you mean http_port"):
        interlog.Broker(htpp_port=1)
    with pytest.raises(RuntimeError, match="not running"):
        _ = interlog.Broker().core


def test_a_failed_start_can_be_tried_again(tmp_path: Path) -> None:
    async def scene() -> None:
        with socket.create_server((HOST, 0)) as taken:
            port = taken.getsockname()[1]
            broker = interlog.Broker(tmp_path / "data", host=HOST, http_port=port)
            with pytest.raises(interlog.InterlogError, match="in use"):
                await broker.start()
        async with broker:
            assert broker.addresses["http"]

    asyncio.run(scene())
