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

RUNS = 5
COMMANDS = Path(sys.executable).parent


def start_broker(folder: str) -> tuple[float, float | None]:
    """Milliseconds from the start of the process to its ready line, and its resident MB then (None without /proc)."""
    command = [str(COMMANDS / "groupkeeper"), "broker", "--port", "0", "--data", folder]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        try:
            while not re.search(r":\d{2,5}\b", broker.stdout.readline()):
                if broker.poll() is not None:
                    raise SystemExit("the broker ended before it was ready")
            ready_ms = (time.perf_counter() - started) * 1000
            return ready_ms, resident_mb(broker.pid)
        finally:
            broker.terminate()


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
    starts = [ready for ready, _ in runs]
    print(f"broker: ready after {statistics.median(starts):.0f} ms (best {min(starts):.0f}), target 400")
    if (resident := runs[-1][1]) is not None:
        print(f"broker: {resident:.1f} MB resident at rest, target 40")
    bare = min(cpu_ms([sys.executable, "-c", "pass"]) for _ in range(RUNS))
    version = min(cpu_ms([str(COMMANDS / "kafka-consumer-groups"), "--version"]) for _ in range(RUNS))
    print(f"kafka-consumer-groups --version: {version:.0f} ms CPU, of which Python itself {bare:.0f}")
