"""Starting: the broker until it is ready, its memory at rest, and the CPU time of the shortest command."""

import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

RUNS = 5
COMMANDS = Path(sys.executable).parent


class Start(NamedTuple):
    """A start of the broker: until its ready line, and what it had used then. None: the system has no /proc."""

    ready_ms: float
    cpu_ms: float | None
    resident_mb: float | None


def start_broker(folder: str) -> Start:
    command = [str(COMMANDS / "groupkeeper"), "broker", "--port", "0", "--data", folder]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        try:
            while not re.search(r":\d{2,5}\b", broker.stdout.readline()):
                if broker.poll() is not None:
                    raise SystemExit("the broker ended before it was ready")
            ready_ms = (time.perf_counter() - started) * 1000
            return Start(ready_ms, used_cpu_ms(broker.pid), resident_mb(broker.pid))
        finally:
            broker.terminate()


def used_cpu_ms(pid: int) -> float | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found.group(1)) / 1024 if found else None


def cpu_ms(command: list[str]) -> float:
    """User and system time of a run of the command, in milliseconds; its output is dropped."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def main() -> None:
    folder = tempfile.mkdtemp(prefix="groupkeeper-bench-")
    try:
        runs = [start_broker(os.path.join(folder, "broker")) for _ in range(RUNS)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    starts = [run.ready_ms for run in runs]
    last = runs[-1]
    print(f"broker: ready after {statistics.median(starts):.0f} ms (best {min(starts):.0f}), aim 250")
    if last.cpu_ms is not None and last.resident_mb is not None:
        print(f"broker: {last.cpu_ms:.0f} ms CPU until then, {last.resident_mb:.1f} MB resident at rest, aim 32")
    bare = min(cpu_ms([sys.executable, "-c", "pass"]) for _ in range(RUNS))
    version = min(cpu_ms([str(COMMANDS / "kafka-consumer-groups"), "--version"]) for _ in range(RUNS))
    print(f"kafka-consumer-groups --version: {version:.0f} ms CPU, of which Python itself {bare:.0f}")
