"""Conducts a story: starts clusters and workers, asks while traffic runs and at rest, has the answers judged."""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from tests.conformance.brokers import RunningBroker
from tests.rig.actors.consuming import SESSION_MS
from tests.rig.actors.sleeping import put_to_sleep
from tests.rig.actors.upheaval import LOOK_S
from tests.rig.asking import Answer, Desk, Verdict
from tests.rig.clusters import is_rebalancing, make_topics, new_cluster
from tests.rig.facts import Notebook, Tail, Trouble, now
from tests.rig.judges import clone as judge_clone
from tests.rig.judges import deletes as judge_deletes
from tests.rig.judges import describe as judge_describe
from tests.rig.judges import exporter as judge_exporter
from tests.rig.judges import members as judge_members
from tests.rig.judges import offsets as judge_offsets
from tests.rig.judges import pages as judge_pages
from tests.rig.judges import pipeline as judge_pipeline
from tests.rig.judges import plans as judge_plans
from tests.rig.judges import status as judge_status
from tests.rig.judges import statuses as judge_statuses
from tests.rig.judges import sums as judge_sums
from tests.rig.judges import sweep as judge_sweep
from tests.rig.judges import times as judge_times
from tests.rig.judges import watch as judge_watch
from tests.rig.judges.changing import page_changes as judge_page_changes
from tests.rig.judges.exporter import CHANGER, VIEWER, Serving
from tests.rig.judges.reporting import report as judge_report
from tests.rig.judges.trends import Trends, Watch
from tests.rig.judges.watch import Watching
from tests.rig.story import Consumer, Sleeper, Story
from tests.rig.truth import Truth

ROOT = Path(__file__).resolve().parents[2]
TRAFFIC_S = 25.0
GAP_S = 4.0
QUESTIONS = (
    judge_offsets, judge_sums, judge_describe, judge_times, judge_members, judge_statuses, judge_exporter, judge_pages,
)  # fmt: skip
"""Asked while traffic runs, and again while it rests."""

LOOKS = 5
"""A seeded defect may fall on a row that cannot be judged: it is missed when so many, at places drawn anew, are."""

Say = Callable[[str], None]


class Worker:
    """A process with some of the actors."""

    def __init__(self, folder: Path, name: str, actors: list[str]) -> None:
        self.name = name
        self.is_mortal = False
        with (folder / f"{name}.log").open("w") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "tests.rig.actors.worker", str(folder), name, *actors],
                cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
            )  # fmt: skip

    @property
    def is_alive(self) -> bool:
        return self._child.poll() is None

    def tell(self, word: str) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(f"{word}\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            assert self.is_mortal, f"{self.name} has ended"

    def wait_for(self, word: str) -> None:
        assert self._child.stdout is not None
        line = self._child.stdout.readline().strip()
        if line != word and not (self.is_mortal and not line):
            raise AssertionError(f"{self.name} said {line!r} instead of {word!r}, status {self._child.poll()}")

    def end(self) -> None:
        if self.is_alive:
            self._child.send_signal(signal.SIGKILL)
        self._child.wait()


class Report:
    """Figures of a run."""

    def __init__(self) -> None:
        self.verdict = Verdict()
        self.by_judge: Counter[str] = Counter()
        self.traffic_s = 0.0

    def text(self, truth: Truth) -> str:
        commits = sum(len(some) for some in truth.commits.values())
        figures = {
            "records": truth.records,
            "commits": commits,
            "groups": len(truth.by_group),
            "comparisons": self.verdict.comparisons,
            "differences": len(self.verdict.differences),
            "defects seeded": self.verdict.seeded,
            "defects missed": len(self.verdict.missed),
        }
        lines = [
            f"{self.traffic_s / 60:.1f} minutes, " + ", ".join(f"{name} {count}" for name, count in figures.items()),
            "comparisons: " + ", ".join(f"{name} {count}" for name, count in sorted(self.by_judge.items())),
        ]
        lines += list(self._shares())
        lines += [f"not compared: {reason} ({count})" for reason, count in sorted(self.verdict.unjudged.items())]
        return "\n".join(lines)

    def _shares(self) -> Iterator[str]:
        """Of each kind of things that were counted, the share of each sort."""
        kinds: dict[str, Counter[str]] = {}
        for name, count in self.verdict.counts.items():
            kind, _, sort = name.partition(": ")
            kinds.setdefault(kind, Counter())[sort] += count
        for kind, sorts in sorted(kinds.items()):
            shares = (f"{sort} {count} ({count / sorts.total():.1%})" for sort, count in sorts.most_common())
            yield f"{kind}: {', '.join(shares)}"


class Run:
    """One story on its clusters."""

    def __init__(self, story: Story, folder: Path, say: Say, *, has_pipeline: bool = False, lake: str = "") -> None:
        self.story = story
        self.has_pipeline = has_pipeline
        self.lake = lake
        self.rests: list[int] = []
        self.folder = folder
        self.say = say
        self.truth = Truth()
        self.report = Report()
        self.rng = random.Random(f"{story.seed}:questions")
        self._tail = Tail(folder)
        self.notebook = Notebook(folder / "conductor.facts")
        self.workers: list[Worker] = []
        self._open: list[tuple[object, Answer]] = []

    def perform(self) -> Report:
        """Raises AssertionError when the rig itself fails; differences are in the report."""
        self.story.save(self.folder / "story.json")
        with ExitStack() as stack:
            servers = self._start_clusters(stack)
            self.desk = Desk(servers, self.folder)
            self.desk.lake = self.lake
            (self.folder / "servers.json").write_text(json.dumps(servers))
            self.notebook.write(*make_topics(self.story, servers))
            self.notebook.flush()
            self._start_workers(stack)
            watching = [Watching(one, server, self.folder, self.desk.environment) for one, server in servers.items()]
            for one in watching:
                stack.callback(one.kill)
            serving = Serving(servers, self.folder, self.desk.environment)
            stack.callback(serving.kill)
            self.desk.exporter = serving.address
            self.desk.token, self.desk.view_token = (serving.tokens[name] for name in (CHANGER, VIEWER))
            self.desk.trends, self.desk.watch = Trends(self.truth), Watch(self.desk)
            self.desk.watch.start()
            stack.callback(self.desk.watch.end)
            began = time.monotonic()
            until = began + self.story.minutes * 60
            while time.monotonic() < until and not self.has_failed:
                self._traffic(min(time.monotonic() + TRAFFIC_S, until))
                self.report.traffic_s = time.monotonic() - began
                self._rest()
            if self.has_pipeline and not self.has_failed:
                self._ask_pipeline()
            self._judge_watching(watching)
            self._take(judge_exporter.NAME, Verdict(differences=list(serving.end())))
            for worker in self.workers:
                worker.tell("stop")
            for worker in self.workers:
                worker.wait_for("stopped")
            self.learn()
        return self.report

    @property
    def has_failed(self) -> bool:
        return bool(self.report.verdict.differences)

    def _start_clusters(self, stack: ExitStack) -> dict[str, str]:
        brokers = {cluster: new_cluster(cluster) for cluster in self.story.clusters}
        for cluster, broker in brokers.items():
            stack.callback(self._stop_cluster, cluster, broker)
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda broker: broker.start(), brokers.values()))
            list(pool.map(self._begin_with_the_past, brokers, brokers.values()))
        return {cluster: broker.bootstrap_servers for cluster, broker in brokers.items()}

    def _begin_with_the_past(self, cluster: str, broker: RunningBroker) -> None:
        sleepers = [one for one in self.story.actors if isinstance(one, Sleeper) and one.cluster == cluster]
        for one in sleepers:
            self.notebook.write(*put_to_sleep(one, broker.bootstrap_servers))
        if sleepers:
            broker.stop(keep=True)
            broker.start()

    def _stop_cluster(self, cluster: str, broker: Any) -> None:
        if broker.log.exists():
            shutil.copy(broker.log, self.folder / f"{cluster}.log")
        broker.stop()

    def _start_workers(self, stack: ExitStack) -> None:
        """One for each cluster, and one for each who is to be killed."""
        for index, cluster in enumerate(self.story.clusters):
            mine = [actor for actor in self.story.actors
                    if actor.cluster == cluster and not isinstance(actor, Sleeper)]  # fmt: skip
            mortal = [actor.name for actor in mine if isinstance(actor, Consumer) and actor.dies_s]
            lasting = [actor.name for actor in mine if actor.name not in mortal]
            for name, actors in ((f"worker-{index}", lasting), *((f"mortal-{one}", [one]) for one in mortal)):
                worker = Worker(self.folder, name, actors)
                worker.is_mortal = name.startswith("mortal")
                self.workers.append(worker)
                stack.callback(worker.end)

    def learn(self) -> None:
        """Takes in what has been written down since."""
        facts = list(self._tail.read())
        troubles = [f"{one.actor}: {one.text}" for one in facts if isinstance(one, Trouble)]
        assert not troubles, "workers failed: " + "; ".join(troubles)
        self.truth.add(facts)

    def _traffic(self, until: float) -> None:
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(GAP_S, left))
            self.learn()
            if time.monotonic() < until:
                self._ask(self.rng.choice(QUESTIONS), self.rng.choice(self.story.clusters))

    def _pause(self) -> None:
        for word in ("pause", "paused"):
            for worker in self.workers:
                worker.tell(word) if word == "pause" else worker.wait_for(word)
        self.rests.append(now())
        self.learn()

    def _wait_for_members(self) -> None:
        """Until no group has rebalanced for longer than a session lasts: members may have been killed."""
        quiet = SESSION_MS / 1000
        since = began = time.monotonic()
        while time.monotonic() - since < quiet and time.monotonic() - began < 4 * quiet:
            time.sleep(LOOK_S)
            if any(map(is_rebalancing, self.desk.servers.values())):
                since = time.monotonic()

    def _hear(self) -> None:
        """What was noticed since by those who look on."""
        time.sleep(3 * LOOK_S)
        self._pause()

    def _resume(self) -> None:
        for worker in self.workers:
            worker.tell("resume")

    def _rest(self) -> None:
        self._pause()
        self._judge_all()
        for question in QUESTIONS:
            for cluster in self.story.clusters:
                self._ask(question, cluster)
        self._hear()
        self._judge_all()
        self._change_and_clone()
        self.say(self.report.text(self.truth).splitlines()[0])
        self._resume()

    def _ask_pipeline(self) -> None:
        """While traffic runs, then at rest, then of an earlier moment."""
        clusters = self.story.clusters
        self.say("pipeline: a snapshot while traffic runs, one at rest, and as-of")
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(judge_pipeline.ask, self.desk, clusters, "snapshot")
            while not asked.done():
                time.sleep(0.2)
        answer = judge_pipeline.look(self.desk, asked.result(), ["lag", "freshness"])
        self._pause()
        self._wait_for_members()
        self._hear()
        self._judge_tables(judge_pipeline, answer, lambda one: judge_pipeline.judge_running(self.truth, one))
        answer = judge_pipeline.ask(self.desk, clusters, "snapshot")
        tables = judge_pipeline.look(self.desk, answer, judge_pipeline.RESTING)
        report = judge_report.ask(self.desk)
        self._hear()
        self._judge_tables(judge_pipeline, tables, lambda one: judge_pipeline.judge_resting(self.truth, one))
        self._judge_tables(judge_status, tables, lambda one: judge_status.judge(self.truth, one))
        self._judge_tables(
            judge_report, report, lambda one: judge_report.judge(self.truth, tables, one),
            spoil=lambda one: judge_report.spoilt(self.truth, tables, one, self.rng))  # fmt: skip
        at = self.rng.choice(self.rests[:-1])
        time_text = f"{datetime.fromtimestamp(at // 1000 / 1e6, UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
        answer = judge_pipeline.ask(self.desk, clusters, "as-of", "--time", time_text)
        past = judge_pipeline.look(self.desk, answer, ["offsets_as_of"])
        self._take(judge_pipeline.NAME, judge_pipeline.judge_as_of(self.truth, past, at))
        self.say(self.report.text(self.truth).splitlines()[0])
        self._resume()

    def _judge_watching(self, watching: list[Watching]) -> None:
        answers = [one.end() for one in watching]
        self._pause()
        for answer in answers:
            verdict = judge_watch.judge(self.truth, answer)
            worse = judge_watch.spoilt(self.truth, answer)
            if worse is not None and not verdict.differences:
                verdict.seeded += 1
                if not judge_watch.judge(self.truth, worse).differences:
                    verdict.missed.append(f"{judge_watch.NAME}: a member who was not seen")
            self._take(judge_watch.NAME, verdict)
        self._resume()

    def _judge_tables(
        self, question: Any, answer: Answer, judge: Callable[[Answer], Verdict],
        spoil: Callable[[Answer], Iterable[Answer]] | None = None,
    ) -> None:  # fmt: skip
        verdict = judge(answer)
        missed: set[int] | None = None if not verdict.differences else set()
        for _ in range(LOOKS):
            if missed == set():
                break
            worse_ones = question.spoilt(self.truth, answer, self.rng) if spoil is None else spoil(answer)
            ways = list(enumerate(worse_ones, 1))
            verdict.seeded += len(ways) if missed is None else len(missed)
            missed = {number for number, worse in ways
                      if (missed is None or number in missed) and not judge(worse).differences}  # fmt: skip
        for number in sorted(missed or ()):
            verdict.missed.append(f"{question.NAME}: seeded defect {number} in {', '.join(answer.content)}")
        self._take(question.NAME, verdict)

    def _change_and_clone(self) -> None:
        for cluster in self.story.clusters:
            # One of them, as commands cost time.
            judge = self.rng.choice([judge_plans, judge_deletes, judge_page_changes, judge_page_changes])
            if judge is judge_page_changes:
                verdict = judge_page_changes.act(
                    self.desk, self.story, cluster, self.rng, self.truth, self.notebook)  # fmt: skip
            else:
                verdict = judge.act(self.desk, cluster, self.rng, self.truth, self.notebook)
            self._take(judge.NAME, verdict)
            self.learn()
        sweeps = [judge_sweep.ask(self.desk, cluster, self.rng) for cluster in self.story.clusters]
        self._hear()
        for answer in sweeps:
            self._take(judge_sweep.NAME, judge_sweep.judge_with_defects(self.truth, answer, self.rng))
        self._take(judge_clone.NAME, judge_clone.act(self.desk, self.story, self.rng, self.truth))

    def _take(self, name: str, verdict: Verdict) -> None:
        self.report.verdict.add(verdict)
        self.report.by_judge[name] += verdict.comparisons
        for difference in verdict.differences[:20]:
            self.say(f"DIFFERENCE {difference}")
        for defect in verdict.missed:
            self.say(f"DEFECT MISSED {defect}")

    def _ask(self, question: object, cluster: str) -> None:
        self._open.append((question, question.ask(self.desk, cluster, self.rng, self.truth)))  # type: ignore[attr-defined]

    def _judge_all(self) -> None:
        for question, answer in self._open:
            self.judge(question, answer)
        self._open.clear()

    def judge(self, question: object, answer: Answer) -> None:
        """Judges an answer, and a spoilt copy of it, in which a defect must be found."""
        verdict = question.judge(self.truth, answer)  # type: ignore[attr-defined]
        self._take(question.NAME, verdict)  # type: ignore[attr-defined]
        spoilt = question.spoil(self.truth, answer, self.rng)  # type: ignore[attr-defined]
        if spoilt is not None and not verdict.differences:
            self.report.verdict.seeded += 1
            again = (question.spoil(self.truth, answer, self.rng) for _ in range(LOOKS - 1))  # type: ignore[attr-defined]
            if not any(one and question.judge(self.truth, one).differences for one in chain((spoilt,), again)):  # type: ignore[attr-defined]
                self.report.verdict.missed.append(f"{question.NAME}: a seeded defect")  # type: ignore[attr-defined]
                self.say(f"DEFECT MISSED by {question.NAME}")  # type: ignore[attr-defined]
