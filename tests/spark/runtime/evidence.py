"""What Spark did in a run of a command: its tasks by its event log, the CPU of driver and executors by their processes,
and which tasks wrote each file.
"""

import json
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
from bench._family import family_of

LOOK_S = 0.2


class Task(NamedTuple):
    """A task that succeeded, with the description of its job; times in ms."""

    job: str
    executor: str
    began_ms: int
    ended_ms: int


class Ran(NamedTuple):
    """A run. CPU in seconds from the start of its first job to the end of its last one; `python_mb`: the most that a
    Python process of the command held (on one machine, its tasks run in some, too).
    """

    tasks: list[Task]
    driver_s: float
    executors_s: float
    python_mb: float


class _Moment(NamedTuple):
    time_ms: float
    driver_s: float
    executors_s: float


def log_to(events: Path) -> list[str]:
    """Options of a command: its Spark writes its event log to this directory."""
    given = {"enabled": "true", "compress": "false", "rolling.enabled": "false", "dir": events.as_uri()}
    return [word for name, value in given.items() for word in ("--conf", f"spark.eventLog.{name}={value}")]


def run(
    words: Sequence[str], events: Path, environment: Mapping[str, str], workers: Collection[int] = (),
    until: Callable[[], bool] = lambda: False,
) -> Ran:  # fmt: skip
    """Runs a command with the options `log_to(events)`; it must succeed. `workers`: processes of Spark's workers, whose
    children are executors. `until`: when it is told to end, if not by itself.
    """
    events.mkdir()
    moments: list[_Moment] = []
    driver_s, executors_s = dict[int, float](), dict[int, float]()  # by process; also of those that have ended
    python_mb, is_told = 0.0, False
    said = events.with_suffix(".out")
    with said.open("wb") as output:
        process = subprocess.Popen([*words, *log_to(events)], env={**environment}, stdout=output, stderr=output)
        while process.poll() is None:
            for pid, seen in family_of(process.pid):
                driver_s[pid] = seen.cpu_s
                python_mb = max(python_mb, 0 if seen.name == "java" else seen.memory_mb)
            for worker in workers:
                executors_s |= {pid: seen.cpu_s for pid, seen in family_of(worker) if pid != worker}
            moments.append(_Moment(time.time() * 1000, sum(driver_s.values()), sum(executors_s.values())))
            if not is_told and until():
                is_told = True
                process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_S)
    assert process.returncode == 0, said.read_text()
    tasks, times = _logged(events)
    first = [moment for moment in moments if moment.time_ms <= min(times)][-1]
    last = [moment for moment in moments if moment.time_ms <= max(times)][-1]
    return Ran(tasks, last.driver_s - first.driver_s, last.executors_s - first.executors_s, python_mb)


def _logged(events: Path) -> tuple[list[Task], list[int]]:
    """The tasks, and when jobs started and ended."""
    jobs: dict[int, str] = {}
    tasks: list[Task] = []
    times: list[int] = []
    for line in (line for path in events.iterdir() for line in path.read_text().splitlines()):
        event = json.loads(line)
        match event["Event"]:
            case "SparkListenerJobStart":
                jobs |= dict.fromkeys(event["Stage IDs"], event["Properties"].get("spark.job.description", ""))
                times.append(event["Submission Time"])
            case "SparkListenerJobEnd":
                times.append(event["Completion Time"])
            case "SparkListenerTaskEnd" if event["Task End Reason"]["Reason"] == "Success":
                told = event["Task Info"]
                job = jobs[event["Stage ID"]]
                tasks.append(Task(job, told["Executor ID"], told["Launch Time"], told["Finish Time"]))
    return tasks, times


def writers_by_table(tables: Path, ran: Ran, known: Collection[Path] = ()) -> dict[str, set[str]]:
    """The jobs of which a task ran when a file was written; of each table that has rows in files that are not
    `known`.
    """
    found: dict[str, set[str]] = {}
    for path in set(files_of(tables)) - {*known}:
        if pq.read_metadata(path).num_rows:
            written_ms = path.stat().st_mtime_ns // 1_000_000
            jobs = {task.job for task in ran.tasks if task.began_ms <= written_ms <= task.ended_ms}
            found.setdefault(path.parent.relative_to(tables).as_posix(), set()).update(
                jobs or {f"no task: {path.name}"}
            )
    return found


def files_of(tables: Path) -> list[Path]:
    """The files of all tables, and of those that are carried over to the next refresh."""
    return [path for path in tables.rglob("*.parquet") if not {"staging", "leases"} & {*path.parts}]
