"""Questions: a command of ours or an Admin call, with the times of before and after."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.rig.facts import now

if TYPE_CHECKING:
    from tests.rig.judges.trends import Trends, Watch

BIN = Path(sys.executable).parent
TIMEOUT_S = 1500
"""Of a command; the longest, a snapshot beside the traffic, needs 100 where nothing else works."""
PATIENT = ("--timeout", "180s", "--property", "socket.connection.setup.timeout.ms=180000")
"""A busy machine is waited for."""


@dataclass(frozen=True)
class Answer:
    """`content`: the JSON of a command, its text where it has none, or what an Admin call gave."""

    cluster: str
    asked: int
    answered: int
    content: Any
    status: int = 0
    errors: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Difference:
    """What an answer says, and what must be so. `topic` and `group`: where the actors behind it are found."""

    judge: str
    cluster: str
    text: str
    topic: str | None = None
    group: str | None = None

    def __str__(self) -> str:
        about = ", ".join(str(one) for one in (self.group, self.topic) if one)
        return f"{self.judge} on {self.cluster}{f' ({about})' if about else ''}: {self.text[:700]}"


@dataclass
class Verdict:
    """`unjudged`: how many comparisons could not be made, by reason. `missed`: seeded defects not found.
    `counts`: figures of what was judged, each named "what: which".
    """

    comparisons: int = 0
    seeded: int = 0
    missed: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    unjudged: dict[str, int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def leave(self, reason: str) -> None:
        self.unjudged[reason] = self.unjudged.get(reason, 0) + 1

    def add(self, other: Verdict) -> None:
        self.comparisons += other.comparisons
        self.seeded += other.seeded
        self.missed += other.missed
        self.differences += other.differences
        self.counts += other.counts
        for reason, count in other.unjudged.items():
            self.unjudged[reason] = self.unjudged.get(reason, 0) + count

    def renamed(self, before: str, after: str) -> Verdict:
        """The same as of another judge, who had this one judge it."""
        unjudged = {reason.replace(f"{before}: ", f"{after}: ", 1): count for reason, count in self.unjudged.items()}
        return replace(self, differences=[replace(one, judge=after) for one in self.differences], unjudged=unjudged)


class Desk:
    """Runs our commands on the clusters of a run.

    Attributes:
        exporter: where `groupkeeper serve` answers that watches them.
        token: what one logs in with there to change something.
        view_token: what one logs in with there who may only look.
        watch: when it polls.
        trends: what must be so of lags over its polls.
        lake: the format of tables that follow the pipeline's; empty: none do.
    """

    watch: Watch
    trends: Trends

    exporter = ""
    token = ""
    view_token = ""
    lake = ""

    def __init__(self, servers: Mapping[str, str], folder: Path) -> None:
        self._deeds: dict[str, list[str]] = {}
        self.servers = servers
        self.folder = folder
        self.environment = {
            **os.environ,
            "GROUPKEEPER_JOURNAL": str(folder / "journal.jsonl"),
            "XDG_CONFIG_HOME": str(folder),
            "NO_COLOR": "1",
            "PYTHONFAULTHANDLER": "1",  # see `_stacks`
        }

    def next_deed(self, cluster: str, deeds: Sequence[str], rng: random.Random) -> str:
        """Each of them in its turn, so that a short run has most of them; in another order on each cluster."""
        left = self._deeds.setdefault(cluster, [])
        if not left:
            left += rng.sample(deeds, len(deeds))
        return left.pop()

    def run(self, cluster: str, *words: str, command: str = "groupkeeper", stdin: str | None = None) -> Answer:
        """The text of a command's output, of which it is said to which cluster it goes."""
        line = [str(BIN / command), *words]
        asked = now()
        with subprocess.Popen(
            line, text=True, env=self.environment, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            try:
                output, errors = process.communicate(stdin, TIMEOUT_S)
            except subprocess.TimeoutExpired:
                stacks = _stacks(process)
                raise AssertionError(f"{' '.join(line)} did not end in {TIMEOUT_S} s\n{stacks}") from None
            except BaseException:
                process.kill()
                raise
        return Answer(cluster, asked, now(), output, process.returncode, errors, {"line": line[1:]})

    def ask(self, cluster: str, *words: str) -> Answer:
        """The JSON of a command of `groupkeeper`."""
        options = ["--output", "json", *PATIENT, "--bootstrap-server", self.servers[cluster]]
        at = words.index("--") if "--" in words else len(words)
        answer = self.run(cluster, *words[:at], *options, *words[at:])
        try:
            content = json.loads(answer.content)
        except json.JSONDecodeError:
            raise AssertionError(
                f"groupkeeper {' '.join(words)} gave no JSON (status {answer.status}): "
                f"{answer.content[:300]!r} {answer.errors[:2000]!r}"
            ) from None
        return Answer(cluster, answer.asked, answer.answered, content, answer.status, answer.errors, answer.about)


def _stacks(process: subprocess.Popen[str]) -> str:
    """Where a command's threads are, and those of the Java that it started. It ends with that."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    log = Path(tempfile.gettempdir()) / f"groupkeeper-spark-{process.pid}.log"
    for child in children.read_text().split() if children.exists() else ():
        if "java" in Path(f"/proc/{child}/cmdline").read_text():
            os.kill(int(child), signal.SIGQUIT)
            time.sleep(2)
    process.send_signal(signal.SIGABRT)
    _, errors = process.communicate(timeout=180)
    return f"{errors[-6_000:]}\n{log.read_text()[-30_000:] if log.exists() else 'Java was not started'}"
