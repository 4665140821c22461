"""How long a start takes: after a kill, after a clean stop, and of `interlog serve` on an empty folder.

    python bench/_recovery.py build FOLDER BYTES QUEUES SHAPE real|none kill|stop
    python bench/_recovery.py open FOLDER kill|stop

builds the folder, or opens it, in a process of its own: `real` checkpoints and settles as a broker does, `none` never
does; `kill` ends it with SIGKILL in the middle of work.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from _rig import GIB, MIB, ROOT, Broker, Report, Threads, compiled, cpu_seconds, percentile

from interlog.app.cli.serve import SWITCH_SECONDS
from interlog.core.broker import Core, CoreSettings
from interlog.journal.record import Record

# Bytes of a message, queues in a tick, messages to each: a busy broker, and one whose ticks are as small as can be.
SHAPES = {"busy": (1024, 8, 8), "small": (100, 1, 1)}


def build(folder: Path, size: int, queues: int, shape: str, checkpoints: bool, kill: bool) -> None:
    """Journal of `size` bytes: messages for all queues in turn, three of four acknowledged a little later."""
    sys.setswitchinterval(SWITCH_SECONDS)  # as `interlog serve`: else a checkpoint waits for the loop at every row
    broker = Broker(folder, polls=checkpoints, durability="os")
    core = broker.core
    made = [core.declare_queue("/", f"queue-{number}") for number in range(queues)]
    broker.tick()
    body, in_a_tick, messages = SHAPES[shape]
    record = Record(None, os.urandom(body), (), 1_700_000_000_000)
    written = at = 0
    while written < size:
        for _ in range(in_a_tick):
            queue = made[at % queues]
            for _ in range(messages):
                queue.append(record, body, True)
            at += 1
            other = made[(at + queues // 2) % queues]
            for message in other.lease(1, messages if at % 4 else 0):
                other.ack(message[0], 1)
        written += core.storage.pending_bytes + in_a_tick * messages * (body + 20)
        broker.tick(durable=False)
    broker.worker.run()
    print(sum(queue.depth for queue in made), flush=True)
    if kill:
        os.kill(os.getpid(), signal.SIGKILL)
    broker.close()


def open_once(folder: Path, kill: bool) -> None:
    """Prints what it took. It ends as it is told, so that the folder can be opened so again."""
    start, cpu = time.perf_counter(), time.process_time()
    core = Core.open(folder, settings=CoreSettings(), worker=Threads())
    took = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
    took["replayed"] = core.recovered.replayed
    took["depth"] = sum(queue.depth for _, queue in core.queues())
    print(json.dumps(took), flush=True)
    if kill:
        os.kill(os.getpid(), signal.SIGKILL)
    core.close()


def run(*words: str) -> str:
    """This file in a process of its own; what it printed."""
    done = subprocess.run([sys.executable, __file__, *words], check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, -signal.SIGKILL) or not done.stdout:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}")
    return done.stdout


def forget(folder: Path) -> None:
    """As after a boot: nothing of the folder is in the system's memory any more."""
    for path in folder.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def recovery(folder: Callable[[], Path], report: Report, quick: bool) -> None:
    size, queues = (64 * MIB, 1000) if quick else (GIB, 1000)
    report.title(f"Starts on a folder that got {size / MIB:,.0f} MiB of journal, {queues:,} queues")
    for name, shape, checkpoints, end, most in (
        ("after a kill", "busy", "real", "kill", 3.0),
        ("after a kill, ticks of one message of 100 B", "small", "real", "kill", 3.0),
        ("after a kill, no checkpoint: all is replayed", "busy", "none", "kill", 3.0),
        ("after a clean stop", "busy", "real", "stop", 0.5),
    ):
        path = folder()
        start = time.perf_counter()
        # What is replayed is what came after the last checkpoint: small ticks need not go on for minutes.
        total = size if shape == "busy" else min(size, 256 * MIB)
        depth = int(run("build", str(path), str(total), str(queues), shape, checkpoints, end))
        built = time.perf_counter() - start
        journal = sum(one.stat().st_size for one in (path / "journal").glob("*.journal"))
        segments = sum(one.stat().st_size for one in (path / "segments").rglob("*.log"))
        note = f"segments {segments / MIB:,.0f} MiB, {depth:,} messages, built in {built:.0f} s"
        report.row(f"{name}: journal files", journal / MIB, "MiB", note)
        for temperature in ("cold", "warm"):
            if temperature == "cold":
                forget(path)
            found = json.loads(run("open", str(path), end))
            if found["depth"] != depth:
                raise RuntimeError(f"{found['depth']} messages are there, not {depth}")
            note = f"{found['replayed']:,} envelopes replayed, {found['cpu']:.2f} s CPU"
            report.row(f"{name}, {temperature}", found["seconds"], "s", note, most=most)
        shutil.rmtree(path)


def serve(folder: Callable[[], Path], report: Report, quick: bool) -> None:
    report.title("interlog serve on an empty folder")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOG_")}
    compiled()
    took, spent, bare = [], [], []
    for _ in range(3 if quick else 15):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True, cwd=ROOT)
        bare.append(time.perf_counter() - start)
        path = folder()
        ready = path / "ready"
        words = [sys.executable, "-m", "interlog", "serve", "--data", str(path / "data")]
        words += ["--http-port", "0", "--amqp-port", "0", "--kafka-port", "0"]
        start = time.perf_counter()
        child = subprocess.Popen([*words, "--ready-file", str(ready)], cwd=ROOT, env=kept, stderr=subprocess.DEVNULL)
        try:
            while not ready.exists() and child.poll() is None:
                time.sleep(0.0005)
            if not ready.exists():  # a start that fails is fast, and no start
                raise RuntimeError(f"the broker ended with {child.returncode} before it was ready")
            took.append(time.perf_counter() - start)
            spent.append(cpu_seconds(child.pid))
        finally:
            child.terminate()
            try:
                child.wait(timeout=10)
            except subprocess.TimeoutExpired:
                print("  the broker did not stop within 10 s of SIGTERM, and was killed")
                child.kill()
                child.wait()
    report.row("process start to ready, best", min(took) * 1e3, "ms", most=150.0)
    report.row("process start to ready, median", percentile(took, 0.5) * 1e3, "ms")
    report.row(
        "CPU from process start to ready, best", min(spent) * 1e3, "ms", "what is left on a machine that is free"
    )
    report.row("python -c pass, best: of this nothing can be saved", min(bare) * 1e3, "ms")


if __name__ == "__main__":
    if sys.argv[1] == "build":
        path, size, queues, shape, checkpoints, end = sys.argv[2:]
        build(Path(path), int(size), int(queues), shape, checkpoints == "real", end == "kill")
    else:
        open_once(Path(sys.argv[2]), sys.argv[3] == "kill")
