"""What has changed between two revisions: in the sources, and in what the broker and two commands cost.

    python tools/measures.py [BEFORE [AFTER]]     (`make measures`; default: the revision before the rooms, and HEAD)

Both revisions run with this environment's Python and libraries, by turns, against one broker of AFTER for the commands.
Generated code (the messages, index and errors of `protocol`, `SyncAdmin`) is left out.
"""

from __future__ import annotations

import ast
import asyncio
import io
import os
import re
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench._filling import PARTITIONS, fill  # noqa: E402
from bench.startup import resident_mb, used_cpu_ms  # noqa: E402

BEFORE_THE_ROOMS = "f9b2d14^"
GENERATED = ("protocol/messages/", "protocol/index.py", "protocol/errors.py", "api/sync_admin.py")
LISTINGS = ("protocol/messages", "broker/apis")  # one module for each message or API
WIDTH = 20
BLOCK = 8  # lines in which two places agree
GROUP_TYPE = re.compile(r"(Classic|Consumer|Share|Streams|Epoch)Group")
STARTS, ROUNDS, GROUPS = 9, 9, 1_000
SETTLED_S = 3.0

T = TypeVar("T")
Modules = Mapping[str, str]
"""Text by path below the package."""


# --- what stands in the sources


def modules_of(folder: Path) -> dict[str, str]:
    found = {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*.py"))}
    return {name: text for name, text in found.items() if not name.startswith(GENERATED)}


def widths(names: Sequence[str]) -> Counter[str]:
    """Modules in each folder."""
    count = Counter(str(Path(name).parent) for name in names)
    return Counter({folder: found for folder, found in count.items() if folder not in LISTINGS})


def in_circles(modules: Modules) -> int:
    """How many modules import each other, also by way of others and for types only."""
    names = {dotted(name): text for name, text in modules.items()}
    left = {name: set(imported(text, names)) - {name} for name, text in names.items()}
    while ends := [name for name, needed in left.items() if not needed & left.keys()]:
        for name in ends:
            del left[name]
    used = {needed for name in left for needed in left[name]}
    return len(left.keys() & used)


def dotted(name: str) -> str:
    return ".".join(["groupkeeper", *Path(name).with_suffix("").parts]).removesuffix(".__init__")


def imported(text: str, known: Mapping[str, str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{one.name}" for one in node.names]
            yield from (one if one in known else node.module for one in inner)
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)


def repeated(modules: Modules) -> tuple[int, int]:
    """Lines that stand in several places in blocks of BLOCK or more, and how many such blocks begin somewhere."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, text in modules.items():
        names = set(lines_of_names(ast.parse(text)))
        lines = [line.strip() for number, line in enumerate(text.splitlines(), 1) if number not in names]
        kept = [line for line in lines if line and not line.startswith(("#", '"""'))]
        for index in range(len(kept) - BLOCK + 1):
            block = tuple(kept[index : index + BLOCK])
            if sum(len(line) > 3 for line in block) == BLOCK:  # brackets alone say nothing
                places[block].append((name, index))
    windows = {place for found in places.values() if len(found) > 1 for place in found}
    lines_covered = {(name, index + step) for name, index in windows for step in range(BLOCK)}
    begins = sum((name, index - 1) not in windows for name, index in windows)
    return len(lines_covered), begins


def lines_of_names(tree: ast.Module) -> Iterator[int]:
    """The numbers of lines that only name things: imports, and lists of what a module exports."""
    for node in ast.walk(tree):
        is_list = isinstance(node, ast.Assign) and any(ast.unparse(one) == "__all__" for one in node.targets)
        if is_list or isinstance(node, ast.Import | ast.ImportFrom):
            assert isinstance(node, ast.stmt)
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def asks_for_type(modules: Modules) -> tuple[int, int]:
    """`isinstance` with a type of group: how often, and in how many modules."""
    found = Counter(
        name
        for name, text in modules.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
        and any(GROUP_TYPE.fullmatch(one.id) for one in ast.walk(node.args[1]) if isinstance(one, ast.Name))
    )  # fmt: skip
    return found.total(), len(found)


def of_sources(folder: Path) -> dict[str, str]:
    modules = modules_of(folder / "src" / "groupkeeper")
    tests = [path.relative_to(folder).as_posix() for path in (folder / "tests").rglob("*.py")]
    rows = {}
    for where, count in (("src", widths(list(modules))), ("tests", widths(tests))):
        (widest, most), wide = count.most_common(1)[0], sum(found > WIDTH for found in count.values())
        rows[f"widest folder of {where}"] = f"{most} ({widest})"
        rows[f"folders of {where} with more than {WIDTH} modules"] = str(wide)
    covered, blocks = repeated(modules)
    asked, places = asks_for_type(modules)
    return rows | {
        "modules in import circles": str(in_circles(modules)),
        f"blocks of {BLOCK} lines or more that stand elsewhere too": f"{blocks} ({covered} lines)",
        "isinstance on types of groups": f"{asked} in {places} modules",
        "modules, lines": f"{len(modules)}, {sum(len(text.splitlines()) for text in modules.values())}",
    }


# --- what is run


class Start(NamedTuple):
    ready_ms: float
    cpu_ms: float
    ready_mb: float
    idle_mb: float


class Revision:
    """A revision's files in a folder, compiled, and how its programs are started."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        packed = subprocess.run(["git", "archive", name], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        subprocess.run([sys.executable, "-m", "compileall", "-q", folder / "src"], check=True)
        self._scripts = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["scripts"]
        self._environment = {**os.environ, "PYTHONPATH": str(folder / "src")}

    def start(self, *words: str, is_quiet: bool = True) -> subprocess.Popen[str]:
        module, _, function = self._scripts[words[0]].partition(":")
        program = f"import sys; from {module} import {function}; sys.argv[0] = {words[0]!r}; sys.exit({function}())"
        output = subprocess.DEVNULL if is_quiet else subprocess.PIPE
        command = [sys.executable, "-c", program, *words[1:]]
        return subprocess.Popen(
            command, env=self._environment, stdout=output, stderr=subprocess.DEVNULL, text=True
        )  # fmt: skip

    def cpu_ms(self, *words: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        if self.start(*words).wait():
            raise SystemExit(f"{self.name}: {' '.join(words)} failed")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000

    def broker(self, folder: Path) -> tuple[subprocess.Popen[str], str, float]:
        """A broker, its address, and after how many milliseconds it was ready."""
        began = time.perf_counter()
        broker = self.start("groupkeeper", "broker", "--port", "0", "--data", str(folder), is_quiet=False)
        assert broker.stdout is not None
        for line in broker.stdout:
            if found := re.search(r"[\w.-]+:\d{2,5}\b", line):
                return broker, found.group(), (time.perf_counter() - began) * 1000
        raise SystemExit(f"{self.name}: the broker ended before it was ready")

    def measured_start(self, folder: Path) -> Start:
        broker, _, ready_ms = self.broker(folder)
        try:
            ready = used_cpu_ms(broker.pid) or 0.0, resident_mb(broker.pid) or 0.0
            time.sleep(SETTLED_S)
            return Start(ready_ms, *ready, resident_mb(broker.pid) or 0.0)
        finally:
            broker.terminate()
            broker.wait()


def by_turns(revisions: Sequence[Revision], rounds: int, measure: Callable[[Revision], T]) -> list[list[T]]:
    found: list[list[T]] = [[] for _ in revisions]
    for _ in range(rounds):
        for index, revision in enumerate(revisions):
            found[index].append(measure(revision))
    return found


def of_runs(revisions: Sequence[Revision], folder: Path) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = [{} for _ in revisions]
    numbers = iter(range(1_000))
    starts = by_turns(revisions, STARTS, lambda one: one.measured_start(folder / f"start-{next(numbers)}"))
    for row, found in zip(rows, starts, strict=True):
        ready = [one.ready_ms for one in found]
        row["broker: ready after, median (least)"] = f"{statistics.median(ready):.0f} ({min(ready):.0f}) ms"
        row["broker: CPU until then, least"] = f"{min(one.cpu_ms for one in found):.0f} ms"
        row["broker: memory when ready"] = f"{statistics.median(one.ready_mb for one in found):.1f} MB"
        row[f"broker: memory idle, after {SETTLED_S:.0f} s"] = (
            f"{statistics.median(one.idle_mb for one in found):.1f} MB"
        )
    broker, address, _ = revisions[-1].broker(folder / "groups")
    try:
        asyncio.run(fill(address, GROUPS))
        where = ("kafka-consumer-groups", "--bootstrap-server", address)
        for title, words in (("--list", ("--list",)), ("--describe --all-groups", ("--describe", "--all-groups"))):
            costs = by_turns(revisions, ROUNDS, lambda one, words=words: one.cpu_ms(*where, *words))  # type: ignore[misc]
            for row, cost in zip(rows, costs, strict=True):
                row[f"{title}, CPU, median (least)"] = f"{statistics.median(cost):.0f} ({min(cost):.0f}) ms"
    finally:
        broker.terminate()
        broker.wait()
    return rows


def main(names: Sequence[str]) -> int:
    before, after = (*names, *(BEFORE_THE_ROOMS, "HEAD")[len(names) :])
    with tempfile.TemporaryDirectory(prefix="groupkeeper-measures-") as name:
        folder = Path(name)
        revisions = [Revision(before, folder / "before"), Revision(after, folder / "after")]
        columns = [of_sources(one.folder) for one in revisions]
        for column, more in zip(columns, of_runs(revisions, folder), strict=True):
            column.update(more)
        dates = subprocess.run(
            ["git", "log", "--no-walk=unsorted", "--format=%h", before, after], cwd=ROOT, stdout=subprocess.PIPE,
            text=True, check=True,
        ).stdout.split()  # fmt: skip
        print(f"| | {dates[0]} | {dates[1]} |\n|---|---|---|")
        for title in columns[1]:
            print(f"| {title} | {columns[0].get(title, '')} | {columns[1][title]} |")
        print(f"\n{GROUPS} groups with {PARTITIONS} offsets each; load average {os.getloadavg()[0]:.1f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
