"""What `follow` makes of a batch: what counts of it, what is reported of clusters, and when tables are due."""

import json
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from groupkeeper.client.errors import AuthenticationFailed, BrokersNotFound, CallTimedOut, ConnectionFailed
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.following import job
from groupkeeper.pipeline.jobs.following.job import BatchTaker, Refreshing, _read
from groupkeeper.pipeline.jobs.following.outages import is_unanswered
from groupkeeper.pipeline.jobs.following.source import (
    Answer,
    Failed,
    Part,
    Receipt,
    forget_answer,
    pickled,
    unread_records,
)
from groupkeeper.pipeline.jobs.reading import Reading
from groupkeeper.pipeline.jobs.watch import Problem, Run, Watch
from groupkeeper.pipeline.kafka.instants import ClusterIdentity, Instant
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.kafka.planning import Range, ReadPlan
from groupkeeper.pipeline.kafka.retention import Replies
from groupkeeper.pipeline.kafka.written import Counts, Written

TOPIC = "__consumer_offsets"
NO_OUTPUT: Any = None
"""Nothing here writes."""

AWAY = Failed("cluster b: 127.0.0.1:1: connection refused", True)


SILENT = Failed("cluster b (127.0.0.1:1) has not answered for 5 s", True)


class Said(Watch):
    def __init__(self) -> None:
        self.problems: list[str] = []
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def problem(self, problem: Problem) -> None:
        self.problems.append(problem.message)


class Clusters(BatchTaker):
    """The clusters a and b, each with 100 records to read in a batch."""

    def __init__(self) -> None:
        clusters = {name: {"kafka.bootstrap.servers": "127.0.0.1:1"} for name in "ab"}
        options = parse_options({"clusters": json.dumps(clusters), "rows": "decoded"})
        self.said = Said()
        refreshing: Any = None
        super().__init__(NO_OUTPUT, options, Run(self.said), refreshing, Path(), threading.Event(), (5, 30))

    def note(
        self, *receipts: Receipt, failed: dict[int, Failed] | None = None, cut: frozenset[int] = frozenset()
    ) -> None:
        """What a batch says of the clusters that have receipts, and of others."""
        some = [each.part.reading for each in receipts]
        answer = answer_of(some, failed=failed or {}, cut=cut)
        self._note_outages(answer, _read(answer, receipts))


def answer_of(some: list[Reading], **more: Any) -> Answer:
    found = Answer(ReadPlan([], {}, {}), some, {}, Replies({}, []), False, frozenset())
    return found._replace(**more)


def reading(number: int, *bounds: int) -> Reading:
    """Of the cluster with this number; of its one partition, the offsets between the bounds."""
    name = "ab"[number]
    return Reading(name, number, tuple(Range(number, name, TOPIC, 0, *each) for each in pairwise(bounds)), ())


def receipt(number: int, reached: int = 100, failed: Failed | None = None) -> Receipt:
    return Receipt(Part(reading(number, 0, 100), False), Written(), {0: reached}, reached == 100, failed)


def test_of_a_cluster_that_several_tasks_read_all_counts_or_nothing() -> None:
    answer = answer_of([reading(0, 0, 100)])
    parts = [Receipt(Part(reading(0, start, start + 50), True), Written(counts=Counts(50)), {0: start + 50}, True)
             for start in (0, 50)]  # fmt: skip
    (read,) = _read(answer, parts)
    assert (read.reached, len(read.written)) == ({0: 100}, 2)
    (read,) = _read(answer, parts[:1])
    assert (read.reached, read.written) == ({}, [])
    parts[0] = parts[0]._replace(reached={0: 20}, is_whole=False, failed=AWAY)
    (read,) = _read(answer, parts)
    assert (read.reached, read.written, read.failed) == ({}, [], AWAY)


def test_what_one_task_reads_of_a_cluster_counts_as_far_as_it_came() -> None:
    (read,) = _read(answer_of([reading(0, 0, 100)]), [receipt(0, 20, AWAY)])
    assert (read.reached, len(read.written), read.is_whole) == ({0: 20}, 1, False)


def test_an_outage_is_told_once_and_that_it_is_over() -> None:
    found = Clusters()
    found.note(receipt(0), receipt(1))
    for _ in range(2):
        found.note(receipt(0), failed={1: SILENT})
    found.note(receipt(0), failed={1: AWAY})
    assert found.said.problems == [f"{SILENT.text}; trying again"]
    assert (found.failed, found.said.notes) == ({"b": AWAY.text}, [])
    assert found._outages[1].pause_s == 16
    for _ in range(2):
        found.note(receipt(0), receipt(1))
    assert (found.said.notes, found.failed) == (["cluster b is read again"], {})
    found.note(failed={1: AWAY})
    assert (len(found.said.problems), found._outages[1].pause_s) == (2, 4)


def test_what_is_read_before_a_failure_counts_and_the_failure_is_told() -> None:
    found = Clusters()
    found.note(receipt(0), receipt(1, 40, AWAY))
    assert (found.said.problems, found.failed) == ([f"{AWAY.text}; trying again"], {"b": AWAY.text})


def test_only_an_outage_is_told_once() -> None:
    found = Clusters()
    for error in (ConnectionFailed("refused"), CallTimedOut("late"), BrokersNotFound("nobody"), ConnectionFailed("no")):
        failure = SourceError(f"cluster b: {error}")
        failure.__cause__ = error
        found.note(failed={1: Failed(str(failure), is_unanswered(failure))})
    assert found.said.problems == ["cluster b: refused; trying again"]
    failure = SourceError("cluster b: wrong password")
    failure.__cause__ = BrokersNotFound("nobody")
    failure.__cause__.__cause__ = AuthenticationFailed("wrong password")
    found.note(failed={1: Failed(str(failure), is_unanswered(failure))})
    assert found.said.problems[1] == "cluster b: wrong password; trying again"


def test_a_cluster_that_is_late_is_named_once() -> None:
    found = Clusters()
    for cut in (frozenset([1]), frozenset[int]()):  # a long first read is not late
        found.note(receipt(0), receipt(1), cut=cut)
    slow = receipt(1)._replace(is_slow=True)
    for _ in range(2):
        found.note(receipt(0), slow)
    assert found.said.notes == ["cluster b is slow: it is read only for each refresh of the tables"]
    assert found._slow == {1}
    found.note(receipt(0), receipt(1))
    assert found._slow == set()
    found.note(receipt(0), slow)
    assert len(found.said.notes) == 2


def test_what_fails_is_told_once_and_tried_again() -> None:
    """A full disk; and processes of Spark that do not start, which are given up in the end."""
    found = Clusters()
    found.stop.set()  # so that there are no pauses
    full = OSError("No space left on device")
    tries: list[Exception | None] = [full, full, full, full, None]

    def followed() -> Exception | None:
        found.error = tries.pop(0)
        return found.error

    job.again(followed, found, Run(found.said))
    assert (tries, found.said.problems) == ([], ["No space left on device; trying again"])

    found.error = None
    late = SourceError("Python worker failed to connect back.")
    starts: list[Exception] = [late] * 5
    with pytest.raises(SourceError, match="failed to connect back"):
        job.again(starts.pop, found, Run(found.said))
    assert (len(starts), len(found.said.problems)) == (2, 2)


def test_tables_are_due_at_once_when_a_cluster_is_read_that_they_do_not_show() -> None:
    found = Clusters()
    dues = []
    for batch in ([receipt(0)], [receipt(0)], [receipt(0), receipt(1, 40)], [receipt(0), receipt(1)]):
        found._measure_at = 9e9
        found.note(*batch)
        dues.append(found._measure_at == 0)
    assert dues == [True, False, False, True]


def test_a_table_that_could_not_be_written_is_made_again_at_the_next_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Clusters()
    failures = [Problem(None, "table lag: No space left on device")]
    made = []

    def make_tables(output: Any, given: Any, run: Run) -> None:
        made.append(len(failures))
        if failures:
            run.fail(failures.pop())

    monkeypatch.setattr(job, "make_tables", make_tables)
    run = Run(found.said)
    refreshing = Refreshing(NO_OUTPUT, run)
    instants = {"a": Instant(0, ClusterIdentity(None, None), TOPIC, {0: 100}, {})}
    assert [refreshing.refresh(found, instants) for _ in range(3)] == [True, True, False]
    assert (made, len(found.said.problems), run.summary.problems) == ([1, 0], 1, [])


def test_what_stays_as_it_was_is_not_said_with_each_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Clusters()
    said: list[list[str]] = [["full"], ["full", "broken"], [], ["full"]]

    def make_tables(output: Any, given: Any, run: Run) -> None:
        for text in said.pop(0):
            run.note(text)
            run.fail(Problem(None, text))

    monkeypatch.setattr(job, "make_tables", make_tables)
    run = Run(found.said)
    refreshing = Refreshing(NO_OUTPUT, run)
    for appended in range(4):
        found.appended = appended
        assert refreshing.refresh(found, {})
    assert found.said.notes == found.said.problems == ["full", "broken", "full"]
    assert (run.summary.notes, run.summary.problems) == (found.said.notes, [])


def test_after_the_end_and_after_a_failure_nothing_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Clusters()
    taken: list[Any] = []

    def fail(batch: Any) -> None:
        taken.append(batch)
        raise OSError("No space left on device")

    monkeypatch.setattr(found, "_take", fail)
    batch: Any = "rows"
    with pytest.raises(OSError, match="No space left"):
        found.take(batch, 0)
    found.take(batch, 1)
    assert (taken, str(found.error)) == (["rows"], "No space left on device")
    found.error = None
    found.stop.set()
    found.wait()
    found.take(batch, 2)
    assert taken == ["rows"]


def test_at_the_end_a_batch_is_left_that_no_executor_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Clusters()
    found._is_taking = found._is_reading = True
    monkeypatch.setattr(job, "_LOOK_S", 0.001)
    monkeypatch.setattr(job, "_IDLE_S", 0.01)
    monkeypatch.setattr(found, "_output", type("Output", (), {"spark": None}))
    monkeypatch.setattr(job, "_is_idle", lambda spark: True)
    assert not found.wait()
    looks = iter(range(100))

    def is_idle(spark: Any) -> bool:
        found._is_taking = next(looks) < 99
        return False

    monkeypatch.setattr(job, "_is_idle", is_idle)
    assert found.wait()


def test_what_was_planned_and_is_not_in_the_tables_is_counted(tmp_path: Path) -> None:
    assert unread_records(tmp_path) == 0
    (tmp_path / "answer").write_bytes(pickled(answer_of([reading(0, 0, 100), reading(1, 40, 100)])))
    assert unread_records(tmp_path) == 160
    forget_answer(tmp_path)
    assert unread_records(tmp_path) == 0
