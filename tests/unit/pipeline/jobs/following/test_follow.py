"""Which clusters a refresh of `follow` waits for: a slow first read, or a failing cluster, holds up no other."""

from __future__ import annotations

import json
import socket
import threading
import time
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from groupkeeper.client.errors import AuthenticationFailed, BrokersNotFound, CallTimedOut, ConnectionFailed
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.following import job, measuring
from groupkeeper.pipeline.jobs.following.job import Refreshing
from groupkeeper.pipeline.jobs.following.outages import is_unanswered
from groupkeeper.pipeline.jobs.following.polling import Polling
from groupkeeper.pipeline.jobs.following.reads import Reads, _Answer
from groupkeeper.pipeline.jobs.reading import Reading
from groupkeeper.pipeline.jobs.watch import Problem, Run, Watch
from groupkeeper.pipeline.kafka.instants import ClusterIdentity, Instant
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.kafka.planning import Range, ReadPlan
from groupkeeper.pipeline.kafka.retention import Replies

TOPIC = "__consumer_offsets"
NO_OUTPUT: Any = None
"""Nothing here writes."""


class Query:
    """A streaming query that has come so far."""

    isActive = True  # noqa: N815

    def __init__(self, name: str, read_to: int | None) -> None:
        self.name = name
        self.read_to = read_to
        self.took_s = 0.0

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802
        if self.read_to is None:
            return None
        took_ms = round(self.took_s * 1000)
        return {
            "batchDuration": took_ms,
            "sources": [{"endOffset": json.dumps({self.name: {TOPIC: {"0": self.read_to}}})}],
        }


class Said(Watch):
    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def problem(self, problem: Problem) -> None:
        self.problems.append(problem)


def following(read_to: dict[str, int | None], *, servers: str = "127.0.0.1:1") -> tuple[Any, Said]:
    """Clusters whose logs had 100 records at the begin, and how far each was read; None: nothing of it yet."""
    properties = {"kafka.bootstrap.servers": servers, "kafka.default.api.timeout.ms": "3000"}
    clusters = dict.fromkeys(read_to, properties)
    options = parse_options({"clusters": json.dumps(clusters), "rows": "decoded"})
    said = Said()
    found: Any = Reads(NO_OUTPUT, options, Run(said), 5)
    for number, (name, offset) in enumerate(read_to.items()):
        found._queries[number] = Query(name, offset)
        found._readings[number] = Reading(name, number, (Range(number, name, TOPIC, 0, 0, 100),), ())
    return found, said


def instants(**stable: int) -> dict[str, Instant]:
    return {name: Instant(0, ClusterIdentity(None, None), TOPIC, {0: end}, {}) for name, end in stable.items()}


@pytest.mark.parametrize("slow", [None, 0, 99])
def test_a_slow_first_read_does_not_hold_up_the_others(slow: int | None) -> None:
    found, _ = following({"read": 100, "slow": slow})
    assert found.is_ready
    assert not found.has_read(instants(read=120, slow=5000))
    found._queries[0].read_to = 120
    assert found.has_read(instants(read=120, slow=5000))
    found._queries[1].read_to = 100  # from then on it is waited for, too
    assert not found.has_read(instants(read=120, slow=5000))


def test_a_cluster_that_is_late_is_waited_for_once_and_named_once() -> None:
    found, said = following({"read": 100, "slow": 100})
    found._queries[0].read_to = 1000
    assert not found.has_read(instants(read=200, slow=200))
    found.note_late(instants(read=200, slow=200))  # the refresh goes on without it
    assert found.has_read(instants(read=300, slow=300))
    found.note_late(instants(read=300, slow=300))
    assert len(said.notes) == 1
    assert "cluster slow is read slowly" in said.notes[0]
    found._queries[1].read_to, found._queries[1].took_s = 200, 20.0  # where it was late, after a read of 20 s
    assert found.has_read(instants(read=400, slow=400))  # it would be late again
    found.note_late(instants(read=400, slow=400))
    assert len(said.notes) == 1
    found._queries[1].took_s = 0.5  # it is read quickly again: it is waited for
    assert not found.has_read(instants(read=500, slow=500))
    found._queries[1].read_to = 500
    assert found.has_read(instants(read=500, slow=500))
    found.note_late(instants(read=500, slow=500))
    found.note_late(instants(read=600, slow=600))
    assert len(said.notes) == 2  # another outage


def test_nothing_is_made_before_one_cluster_is_read() -> None:
    found, _ = following({"one": None, "other": 99})
    assert not found.is_ready


def test_a_table_that_could_not_be_written_is_made_again_at_the_next_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    found, said = following({"read": 100})
    found.measure = lambda: instants(read=100)
    failures = [Problem(None, "table lag: No space left on device")]
    made = []

    def make_tables(output: Any, given: Any, run: Run) -> None:
        made.append(len(failures))
        if failures:
            run.fail(failures.pop())

    monkeypatch.setattr(job, "make_tables", make_tables)
    run = Run(said)
    refreshing = Refreshing(NO_OUTPUT, found, run)
    assert [refreshing.refresh(threading.Event()) for _ in range(3)] == [True, True, False]
    assert (made, len(said.problems), run.summary.problems) == ([1, 0], 1, [])


def test_a_cluster_that_never_answers_is_asked_aside() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()  # connections are taken, and nothing is ever said
        host, port = silent.getsockname()
        found, _ = following({"read": 100, "silent": 0}, servers=f"{host}:{port}")
        del found._queries[1]
        found.look_after()
        asking = found._asking[1]
        found.look_after()
        assert not asking.done()
        assert not found.is_ready  # there is some patience at the begin
        found._begun -= found.patience_s
        assert found.is_ready
    asking.result(30)


class Silent(Polling):
    """A cluster that is read by this process, and has not answered for so long."""

    silence_s = 0.0  # type: ignore[assignment]
    answer_s = 0.1
    isActive = True  # type: ignore[assignment]  # noqa: N815
    lastProgress = Query("b", 100).lastProgress  # type: ignore[assignment]  # noqa: N815

    def __init__(self) -> None:
        self.wakes = 0
        self.error: Exception | None = None

    def wake(self) -> None:
        self.wakes += 1

    def exception(self) -> Exception | None:
        return self.error

    def stop(self) -> None:
        pass


def away() -> SourceError:
    error = SourceError("cluster b: 127.0.0.1:1: connection refused")
    error.__cause__ = ConnectionFailed("connection refused")
    return error


def test_an_outage_is_told_once_and_that_it_is_over() -> None:
    found, said = following({"a": 100, "b": 100})
    query = found._queries[1] = Silent()
    query.silence_s = 4.9
    found.look_after()
    assert said.problems == []
    query.silence_s = 5.0
    found.look_after()
    found.look_after()
    assert found.has_read(instants(a=100, b=200))  # nobody waits for it
    found.note_late(instants(a=100, b=200))
    query.isActive, query.error = False, away()
    found.look_after()
    found._failed(1, str(away()), is_away=True)  # asked again, in vain
    assert said.problems == [Problem("b", "cluster b (127.0.0.1:1) has not answered for 5 s; trying again")]
    assert found.failed["b"] == "cluster b: 127.0.0.1:1: connection refused"
    assert said.notes == []
    found._queries[1] = Silent()
    found.look_after()
    found.look_after()
    assert said.notes == ["cluster b is read again"]


class Measured:
    """Clusters that are measured: those in `late` when they are let, and others at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *late: str) -> None:
        self.end = 100
        self._late = {name: threading.Event() for name in late}
        monkeypatch.setattr(measuring, "_measured", self)

    def __call__(self, options: Any) -> Any:
        (cluster,) = options.clusters
        end = self.end
        late = self._late.get(cluster.name)
        if late is not None:
            late.wait(300)
        return measuring._Measured(ReadPlan([], {}, instants(**{cluster.name: end})), 0.1 if late is None else 12.0)

    def let(self, name: str) -> None:
        self._late[name].set()


def test_a_cluster_that_is_silent_holds_up_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = following({"a": 100, "b": 100})
    found._queries = {0: Silent(), 1: Silent()}
    found._queries[1].silence_s = 6.0
    measured = Measured(monkeypatch, "b")
    for _ in range(2):
        began = time.monotonic()
        assert list(found.measure()) == ["a"]
        assert time.monotonic() - began < 60
        assert found.failed["b"] == "cluster b (127.0.0.1:1) has not answered for 5 s"
    assert found._queries[0].wakes == 2  # what is read is to be of that instant
    measured.let("b")
    found._pool.shutdown()


def test_an_instant_of_an_earlier_refresh_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has been read since is not held against it."""
    found, _ = following({"a": 100, "b": 100})
    measured = Measured(monkeypatch, "b")
    monkeypatch.setattr(measuring, "_PATIENCE_MS", 300)
    assert list(found.measure()) == ["a"]
    assert found.failed["b"] == "cluster b was not measured within 0.3 s"
    measured.end = 200
    measured.let("b")
    found._measuring._under_way[1].result(30)
    again = found.measure()
    assert {name: each.stable for name, each in again.items()} == {"a": {0: 200}, "b": {0: 200}}
    assert found._measuring.limit_s(1) == 24  # it may take twice as long as it took
    found._pool.shutdown()


def test_a_cluster_that_begins_to_be_read_makes_a_refresh_due_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = following({"a": 100})
    Measured(monkeypatch)
    found._new_reads.add(0)
    assert found.has_more
    found.measure()
    assert not found.has_more
    found._pool.shutdown()


def test_a_cluster_that_has_not_answered_yet_is_told_of_by_the_first_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    found, said = following({"a": 100, "b": 100})
    Measured(monkeypatch)
    del found._queries[1]
    found._readings.pop(1)
    found._asking[1], found._asked_at[1] = Future(), time.monotonic()
    found.measure()
    assert (said.problems, found.failed) == ([], {})
    found._asked_at[1] -= 5
    for _ in range(2):
        found.measure()
    assert found.failed["b"] == "cluster b (127.0.0.1:1) has not answered for 5 s"
    assert [each.message for each in said.problems] == [f"{found.failed['b']}; trying again"]
    found._pool.shutdown()


def test_only_an_outage_is_told_once() -> None:
    found, said = following({"b": 100})
    for error in (ConnectionFailed("refused"), CallTimedOut("late"), BrokersNotFound("nobody"), ConnectionFailed("no")):
        failure = SourceError(f"cluster b: {error}")
        failure.__cause__ = error
        found._failed(0, str(failure), is_away=is_unanswered(failure))
    assert [each.message for each in said.problems] == ["cluster b: refused; trying again"]
    failure = SourceError("cluster b: wrong password")
    failure.__cause__ = BrokersNotFound("nobody")
    failure.__cause__.__cause__ = AuthenticationFailed("wrong password")
    found._failed(0, str(failure), is_away=is_unanswered(failure))
    assert said.problems[1].message == "cluster b: wrong password; trying again"


def test_why_a_read_ended_is_told_unless_the_cluster_tells_it_better() -> None:
    found, said = following({"b": 100})
    for _ in range(2):
        found._queries[0] = query = Silent()
        query.isActive, query.error = False, SourceError("cluster b: the topic has another id")
        found.look_after()
        assert said.problems == []
    rebuilt = {0: SourceError("cluster b: the tables are of another cluster")}
    found._output = type("Empty", (), {"ledger": SimpleNamespace(identities={})})
    found._start(_Answer(ReadPlan([], {}, {}), rebuilt, Replies({}, [])))
    assert [each.message for each in said.problems] == ["cluster b: the tables are of another cluster; trying again"]


def test_a_failure_that_has_passed_is_said_again_and_tried_soon() -> None:
    found, said = following({"c": 100})
    for _ in range(3):
        found._failed(0, "out of reach")
    assert (len(said.problems), found._outages[0].pause_s) == (1, 16)
    found.look_after()  # it is read again
    found._failed(0, "out of reach")
    assert (len(said.problems), found._outages[0].pause_s) == (2, 4)
