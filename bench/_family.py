"""What a process and everything that it started cost: looked at while it runs, by who they are.

Spark's Python workers are ended by a process that does not wait for them, so that sums of finished children would tell
too little: what each process had used when it was seen last is added up.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

LOOK_S = 0.1
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20
_COLLECTION = re.compile(r"Pause (?:Young|Full) .*? \d+M->(\d+)M\((\d+)M\)")


class Cost(NamedTuple):
    """Memory in MB: the most that all were resident with together, and the most of each part, at whatever time; pages
    that forked processes share count for each of them. Of Java's heap: the most that it took, and what was in use
    behind its collections, in the middle of the second half of them.
    """

    wall_s: float
    cpu_s: float
    memory_mb: float
    java_mb: float
    driver_mb: float
    workers_mb: float
    heap_mb: float
    used_mb: float


class _Seen(NamedTuple):
    parent: int
    name: str
    cpu_s: float
    memory_mb: float
    threads: int


def cost_of(words: Sequence[str], environment: dict[str, str]) -> Cost:
    """Run a command that starts one Java. SystemExit with what it said when it fails."""
    with tempfile.TemporaryDirectory() as directory:
        # Every Java of the command gets these: Spark's own launcher too, which collects nothing.
        options = f"{environment.get('JAVA_TOOL_OPTIONS', '')} -Xlog:gc:file={directory}/%p.log"
        began = time.perf_counter()
        with tempfile.TemporaryFile() as said:
            run = subprocess.Popen(words, stdout=said, stderr=said, env=environment | {"JAVA_TOOL_OPTIONS": options})
            cpu_s: dict[int, float] = {}
            most = [0.0, 0.0, 0.0, 0.0]
            while run.poll() is None:
                parts = [0.0, 0.0, 0.0]
                for pid, seen in family_of(run.pid):
                    cpu_s[pid] = seen.cpu_s
                    parts[0 if seen.name == "java" else 1 if pid == run.pid else 2] += seen.memory_mb
                most = [max(pair) for pair in zip(most, [sum(parts), *parts], strict=True)]
                with suppress(subprocess.TimeoutExpired):
                    run.wait(LOOK_S)
            wall_s = time.perf_counter() - began
            if run.returncode:
                said.seek(0)
                raise SystemExit(f"{' '.join(words)}: status {run.returncode}\n{said.read().decode(errors='replace')}")
        return Cost._make((wall_s, sum(cpu_s.values()), *most, *_heap(Path(directory))))


def cpu_of(work: Callable[[], object]) -> float:
    """CPU seconds of this process and its descendants while it ran."""
    before = {pid: seen.cpu_s for pid, seen in family_of(os.getpid())}
    work()
    return sum(seen.cpu_s - before.get(pid, 0) for pid, seen in family_of(os.getpid()))


class Held(NamedTuple):
    """What processes hold at a moment."""

    memory_mb: float = 0.0
    descriptors: int = 0
    threads: int = 0


def held(without: int | None = None) -> dict[str, Held]:
    """What this process (`job`), its Java and its other descendants (`workers`) hold, but for the one `without`."""
    found = dict.fromkeys(("job", "java", "workers"), Held())
    for pid, seen in family_of(os.getpid()):
        if pid == without:
            continue
        part = "job" if pid == os.getpid() else "java" if seen.name == "java" else "workers"
        so_far = found[part]
        found[part] = Held(
            so_far.memory_mb + seen.memory_mb, so_far.descriptors + _descriptors(pid), so_far.threads + seen.threads
        )
    return found


def _descriptors(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:  # it has ended
        return 0


def _heap(directory: Path) -> tuple[float, float]:
    """The most that the heap took, and what was usually in use behind a collection."""
    found = [[tuple(map(int, pair)) for pair in _COLLECTION.findall(path.read_text())] for path in directory.iterdir()]
    collections = max(found, key=len, default=[])
    if not collections:
        return 0.0, 0.0
    return max(size for _, size in collections), median(used for used, _ in collections[len(collections) // 2 :])


def family_of(root: int) -> Iterator[tuple[int, _Seen]]:
    """The process and its descendants that live."""
    seen = {int(entry.name): one for entry in Path("/proc").iterdir() if entry.name.isdigit() and (one := _look(entry))}
    family, more = set[int](), {root}
    while more:
        family |= more
        more = {pid for pid, one in seen.items() if one.parent in family} - family
    for pid in family & seen.keys():
        one = seen[pid]
        if seen.get(one.parent, one).name == "java":
            # Java's children are Java, with all its memory, until they begin with what they are for.
            one = _look(Path(f"/proc/{pid}")) if _words(pid) != _words(one.parent) else None
        if one is not None:
            yield pid, one


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _look(entry: Path) -> _Seen | None:
    try:
        start, _, rest = (entry / "stat").read_text().rpartition(")")
    except OSError:
        return None
    fields = rest.split()
    cpu_s = sum(map(int, fields[11:13])) * _TICK_S
    return _Seen(int(fields[1]), start.partition("(")[2], cpu_s, int(fields[21]) * _PAGE_MB, int(fields[17]))
