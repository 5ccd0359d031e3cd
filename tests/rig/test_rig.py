"""The rig itself: its stories, its truth, and that its judges find a defect."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.acts import make_topic
from tests.rig.actors.others import KafkaPythonThread
from tests.rig.actors.performing import CLIENT, Gate, Performer, partitions_of, patiently
from tests.rig.actors.sleeping import hash_of, log_partition_of
from tests.rig.asking import Answer, Difference
from tests.rig.cast import draw
from tests.rig.facts import (
    DONE,
    MAYBE,
    Committed,
    Cut,
    Made,
    Notebook,
    Produced,
    Reading,
    Removed,
    Tail,
    TransactionEnded,
    now,
)
from tests.rig.judges import members as judge_members
from tests.rig.judges import pages as judge_pages
from tests.rig.judges import pipeline as judge_pipeline
from tests.rig.judges import sweep as judge_sweep
from tests.rig.judges import times as judge_times
from tests.rig.judges.exporter import BY_STATUS, MEMBER_PARTITIONS, Series, agrees
from tests.rig.run import Run
from tests.rig.shrink import shrink
from tests.rig.story import Committer, Consumer, Cutter, Producer, Sharer, Story, Topic
from tests.rig.truth import RETRY_NS, Truth
from tests.unit.live.views import described, member, row, snapshot, view

from groupkeeper.client.admin.types import Position
from groupkeeper.client.admin.types import TopicPartition as Place
from groupkeeper.live.model import Wait
from groupkeeper.testing.background import BackgroundBroker
from groupkeeper.web.pages import parts
from groupkeeper.web.pages.group import group_page
from groupkeeper.web.pages.topics import topic_page, topics_of

CLUSTERS = ("embedded", "apache-4.4.0")


def record(offset: int, began: int, ended: int, transaction: str | None = None) -> Produced:
    return Produced("c", "t", 0, offset, 1000 + offset, 10, "p", offset, None, False, transaction, began, ended)


def truth_of(*facts: object) -> Truth:
    truth = Truth()
    truth.add([Made("c", "t", 1, {}, 0, 0), *facts])  # type: ignore[list-item]
    return truth


def test_a_seed_gives_one_story(tmp_path: Path) -> None:
    story = draw(7, 3, CLUSTERS)
    assert story == draw(7, 3, CLUSTERS)
    assert story != draw(8, 3, CLUSTERS)
    story.save(tmp_path / "story.json")
    assert Story.load(tmp_path / "story.json") == story


def test_the_end_of_a_log_lies_between_what_was_acknowledged_and_what_was_sent() -> None:
    log = truth_of(record(0, 10, 20), record(1, 30, 50)).logs["c", "t", 0]
    assert log.end(asked=25, answered=28) == (1, 1)
    assert log.end(asked=25, answered=31) == (1, 2)
    assert log.end(asked=40, answered=45) == (1, 2)
    assert log.end(asked=50, answered=55) == (2, 2)


def test_times_are_not_judged_where_a_record_has_no_known_offset() -> None:
    answer = Answer("c", 10**15, 10**15 + 1, {"records": {Position("t", 0, 0): 999}})
    assert len(judge_times.judge(truth_of(record(0, 1, 2)), answer).differences) == 1
    assert judge_times.judge(truth_of(record(0, 1, 2), record(-1, 3, 4)), answer).differences == []


def test_a_marker_takes_an_offset_and_an_open_transaction_holds_the_last_stable_one() -> None:
    facts = [record(0, 10, 20), record(1, 30, 40, "x")]
    open_still = truth_of(*facts)
    assert open_still.last_stable(("c", "t", 0), 50, 60) == (1, 1)
    ended = truth_of(*facts, TransactionEnded("c", "x", True, [("t", 0)], 70, 80))
    assert ended.last_stable(("c", "t", 0), 75, 76) == (1, 3)
    assert ended.last_stable(("c", "t", 0), 80, 90) == (3, 3)
    assert ended.logs["c", "t", 0].end(80, 90) == (3, 3)


def test_commits_under_way_may_or_may_not_be_there() -> None:
    one, two = (Committed("c", "g", "t", 0, at, -1, "", DONE, "a", at, at + 5) for at in (10, 20))
    truth = truth_of(one, two)
    key = ("c", "g", "t", 0)
    assert truth.committed(key, 1, 5) == [None]
    assert truth.committed(key, 12, 13) == [None, one]
    assert truth.committed(key, 15, 19) == [one]
    assert truth.committed(key, 16, 22) == [one, two]
    assert truth.committed(key, 25, 26) == [two]


def test_a_commit_of_days_ago_is_of_then_and_there_since_it_was_written() -> None:
    one = Committed("c", "g", "t", 0, 7, -1, "", DONE, "a", 10, 15, 3)
    assert (one.times, one._replace(stated_ms=-1).times) == ((3_000_000, 3_000_000), (10, 15))
    assert truth_of(one).committed(("c", "g", "t", 0), 16, 17) == [one]


def test_the_partition_of_a_group_is_by_the_hash_of_java() -> None:
    said = {"": 0, "hello": 99162322, "polygenelubricants": -2147483648, "grüße \U0001f600": 347379084}
    assert {text: hash_of(text) for text in said} == said


def test_a_group_that_there_must_not_be_is_a_difference() -> None:
    truth = truth_of(Reading("c", "g", "a", 1))
    shown = Answer("c", 2, 3, {"groups": [{"group": "g"}], "members": []})
    assert [one.group for one in judge_members.judge(truth, shown).differences] == ["g"]
    assert not judge_members.judge(truth, Answer("c", 2, 3, {"groups": [], "members": []})).differences


def test_a_row_that_is_missing_is_a_difference() -> None:
    first, late = (
        Committed("c", group, "t", 0, 1, -1, "", DONE, "a", at, at + 5) for group, at in (("g", 10), ("h", 40))
    )
    second = 1_000_000_000
    truth = truth_of(record(0, 1, 2), first, late._replace(began=20 * second, ended=20 * second + 5))
    tables: dict[str, list[judge_pipeline.Row]] = {name: [] for name in judge_pipeline.RESTING}
    running = judge_pipeline.judge_running(truth, Answer("all", 20 * second, 21 * second, tables))
    assert [one.group for one in running.differences] == ["g"]
    at_rest = judge_pipeline.judge_resting(truth, Answer("all", 30 * second, 31 * second, tables))
    assert sorted(one.group or "" for one in at_rest.differences if one.text.startswith("lag at")) == ["g", "h"]


def test_a_seeded_defect_falls_on_a_row_that_is_judged() -> None:
    truth = truth_of(Made("c", "gone", 1, {}, 0, 0), Removed("c", "gone", 5, 6))
    row = {"cluster": "c", "group_id": "g", "partition": 0, "direction": "back", "from_offset": 9, "to_offset": 2}

    def spoilt(*topics: str) -> list[str]:
        answer = Answer("c", 40, 41, {"commits": [], "rewinds": [{**row, "topic": one} for one in topics]})
        worse = judge_pipeline.spoilt(truth, answer, random.Random(1))
        return [one["topic"] for each in worse for one in each.content["rewinds"] if one["to_offset"] != 2]

    assert (spoilt("gone"), spoilt("gone", "t")) == ([], ["t"])
    assert not list(judge_pipeline.spoilt(truth, Answer("c", 40, 41, {"lag": []}), random.Random(1)))


def test_a_commit_of_unknown_outcome_may_or_may_not_be_in_the_tables() -> None:
    done, maybe = (
        Committed("c", "g", "t", 0, offset, -1, "", outcome, "a", 10 * offset, 10 * offset + 5)
        for offset, outcome in ((1, DONE), (2, MAYBE))
    )

    def differences(truth: Truth, offset: int) -> list[str]:
        row = {"cluster": "c", "group_id": "g", "topic": "t", "partition": 0, "committed_offset": offset}
        answer = Answer("c", 40, 41, {"offsets_as_of": [{**row, "metadata": ""}]})
        return [one.text for one in judge_pipeline.judge_as_of(truth, answer, 30).differences]

    assert differences(truth_of(done), 1) == differences(truth_of(done, maybe), 1) == []
    assert differences(truth_of(done, maybe), 2) == differences(truth_of(maybe), 2) == []
    assert differences(truth_of(done), 2) == ["as of: t-0 is (2, ''), truth (1, '')"]
    assert len(differences(truth_of(done, maybe), 3)) == 1


def test_lag_is_null_only_where_commits_were_held_back_for_long() -> None:
    truth = truth_of(record(0, 1, 2), Committed("c", "g", "t", 0, 1, -1, "", DONE, "a", 10, 15))
    place = {"cluster": "c", "group_id": "g", "topic": "t", "partition": 0}
    numbers = {"committed_offset": 0, "log_end_offset": 1, "last_stable_offset": 1, "lag_basis": "unknown"}
    times = {"measured_time": datetime(2026, 11, 1)}
    row = {**place, **numbers, **times, "lag": None, "lag_ms": None, "problem": "held back"}
    held = {"cluster": "c", "log_partition": log_partition_of("g", 8), "behind_ms": 60_000, "problem": "held back"}

    def differences(row: judge_pipeline.Row, **more: object) -> int:
        content = {"lag": [row], "freshness": [{**held, **more}]}
        return len(judge_pipeline.judge_running(truth, Answer("all", 20, 30, content)).differences)

    assert differences(row) == 0
    assert differences(row, behind_ms=59_999) > 0
    assert differences(row, log_partition=log_partition_of("h", 8)) > 0
    assert differences({**row, "problem": None}) > 0
    assert differences({**row, "lag": 1}) > 0


def test_the_start_of_a_log_that_is_being_cut() -> None:
    log = truth_of(record(0, 1, 2), Cut("c", "t", 0, 1, 10, 20)).logs["c", "t", 0]
    assert (log.start(5, 6), log.start(12, 13), log.start(20, 21)) == ((0, 0), (0, 1), (1, 1))


def test_what_retention_cut_at_rest_is_not_swept_once_that_was_seen() -> None:
    second = 1_000_000_000
    facts = [*(record(at, 1, 2) for at in range(3)), Committed("c", "g", "t", 0, 1, -1, "", DONE, "a", 3, 4)]
    content: dict[str, list[object]] = {"changes": [], "problems": []}
    about = {"kind": "expiring", "age_ms": 2000}
    answer = Answer("c", 60 * second, 61 * second, content, about=about)
    (found,) = judge_sweep.judge(truth_of(*facts), answer).differences
    assert "is not swept, truth it is" in found.text
    seen_late = Cut("c", "t", 0, 2, 59 * second, 62 * second)
    assert not judge_sweep.judge(truth_of(*facts, seen_late), answer).differences


def test_facts_are_read_as_they_are_added(tmp_path: Path) -> None:
    notebook, tail = Notebook(tmp_path / "a.facts"), Tail(tmp_path)
    notebook.write(record(0, 1, 2))
    notebook.flush()
    assert list(tail.read()) == [record(0, 1, 2)]
    (tmp_path / "a.facts").open("a").write('["Produced", "c"')  # of a worker that is killed
    assert list(tail.read()) == []


def test_the_smallest_story_is_found() -> None:
    story = draw(3, 3, CLUSTERS)
    guilty = next(actor for actor in story.actors if isinstance(actor, Producer) and actor.kind == "transactional")

    def perform(smaller: Story) -> list[Difference]:
        return [found] if guilty in smaller.actors else []

    found = Difference("offsets", guilty.cluster, "wrong", guilty.topic)
    smallest, shown = shrink(story, found, perform, attempts=30)
    assert smallest.actors == (guilty,)
    assert smallest.clusters == (guilty.cluster,)
    assert shown == found


@pytest.fixture(scope="module")
def broker() -> Iterator[BackgroundBroker]:
    with BackgroundBroker() as running:
        make_topic(running.bootstrap_servers, "t")
        yield running


def test_what_does_not_answer_yet_is_asked_again(broker: BackgroundBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **CLIENT})
    answers = iter([KafkaException("no leader"), KafkaException("no connection")])

    def ask() -> list[int]:
        for error in answers:
            raise error
        return partitions_of(admin, "t")

    assert patiently(ask) == [0]


def test_who_misses_that_the_gate_was_open_still_rests(tmp_path: Path) -> None:
    gate, was_open = Gate(), threading.Event()

    class Idler(Performer):
        def idle(self) -> None:
            was_open.wait(30)

    gate.close()
    idler = Idler(Cutter("a", "c", "t"), gate, Notebook(tmp_path / "a.facts"), {}, random.Random(1))
    idler.start()
    assert gate.wait_for_rest([idler], 30) == []
    gate.open()
    gate.close()
    assert gate.wait_for_rest([idler], 0.01) == ["a"]
    was_open.set()
    assert gate.wait_for_rest([idler], 30) == []
    assert idler in gate._resting
    gate.end()
    idler.join(30)


@pytest.fixture(params=["simple", "consumer"])
def commit(broker: BackgroundBroker, request: pytest.FixtureRequest) -> Iterator[Callable[[int], float]]:
    """Commits an offset as the rig's clients do; gives how long that took."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": request.param, "enable.auto.commit": False}
    # librdkafka asks for the coordinator behind a fetch on the same connection. Where that waits 500 ms, each retry of
    # a commit may close the next connection to the coordinator, for a minute and more.
    settings["fetch.wait.max.ms"] = 10
    if request.param == "consumer":
        settings["group.protocol"] = "consumer"
    client = confluent_kafka.Consumer({**settings, **CLIENT})
    if request.param == "consumer":
        client.subscribe(["t"])
        deadline = time.monotonic() + 30
        while not client.assignment() and time.monotonic() < deadline:
            client.poll(0.1)

    def of(offset: int) -> float:
        began = time.monotonic()
        client.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
        return time.monotonic() - began

    of(0)  # so that it knows its coordinator
    yield of
    client.close()


def test_a_late_answer_does_not_make_a_client_commit_again(
    broker: BackgroundBroker, commit: Callable[[int], float]
) -> None:
    with broker.faults.delay("OffsetCommit", 3000, executes=True) as late:
        assert commit(1) > 2.9
        assert late.seen == 1


@pytest.mark.parametrize("error", ["COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "REQUEST_TIMED_OUT", None])
def test_a_client_commits_again_after_an_error_that_passes_or_a_lost_connection(
    broker: BackgroundBroker, commit: Callable[[int], float], error: str | None
) -> None:
    times: list[int] = []

    def is_seen(call: object) -> bool:
        times.append(time.time_ns())
        return True

    faults = broker.faults
    with (
        faults.disconnect("OffsetCommit", executes=True, times=1, where=is_seen)
        if error is None
        else faults.error("OffsetCommit", error, executes=True, times=1, where=is_seen)
    ):
        commit(2)
    assert len(times) == 2
    assert times[1] - times[0] > RETRY_NS


def test_a_member_that_joins_again_is_not_taken_for_one_of_the_group(broker: BackgroundBroker, tmp_path: Path) -> None:
    """kafka-python forgets that it was joining when the answer comes after `poll` gave up: it sends no heartbeat."""
    notebook, tail, truth = Notebook(tmp_path / "a.facts"), Tail(tmp_path), Truth()
    actor = Consumer("a", "c", "again", ("t",), library="kafka-python")
    member = KafkaPythonThread(actor, Gate(), notebook, {"c": broker.bootstrap_servers}, random.Random(1))
    name = ("c", "again")

    def read_until(is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 30
        while not is_so():
            assert time.monotonic() < deadline
            member.read(0.05)
            notebook.flush()
            truth.add(tail.read())

    member.begin()
    read_until(lambda: bool(truth.assigned[name]))
    assert truth.is_calm(*name, now(), now(), 0)
    begun = len(truth.joining[name])
    with broker.faults.delay("SyncGroup", 1000, executes=True) as late:
        other = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "again"})
        other.subscribe(["t"])
        read_until(lambda: other.poll(0) is None and len(truth.joining[name]) > begun and late.seen > 0)
        assert not truth.is_calm(*name, now(), now(), 0)
        other.close()
    member.finish()


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_short_run_has_no_difference_and_finds_every_seeded_defect(tmp_path: Path) -> None:
    topics = (Topic("embedded", "small", 3), Topic("embedded", "paid", 1), Topic("embedded", "shared", 2))
    actors = (
        Producer("writer", "embedded", "small", rate=50.0),
        Producer("payer", "embedded", "paid", kind="transactional", aborts=0.5, leaves_open=True, rate=50.0),
        Producer("sharing", "embedded", "shared", rate=50.0),
        Sharer("sharer", "embedded", "sharers", ("shared",), releases=0.9),
        Consumer("reader", "embedded", "readers", ("small", "paid"), every=10, commits=0.5),
        Consumer("modern", "embedded", "moderns", ("small",), protocol="consumer", every=10),
        Committer("wanderer", "embedded", "wanderers", ("small", "paid"), every_s=0.2, metadata=("", "text")),
        Cutter("cutter", "embedded", "small", every_s=1.0),
    )
    story = Story(1, 0.15, ("embedded",), topics, actors)
    said: list[str] = []
    run = Run(story, tmp_path, said.append)
    report = run.perform()
    assert (report.verdict.differences, report.verdict.missed) == ([], []), said
    assert report.verdict.seeded >= 3
    assert run.truth.records > 100


@pytest.mark.parametrize("ms", [0, 1, 999, 1000, 59_999, 185_400, 3_599_999, 7_815_000, 90_061_000, -1, -7_815_000])
def test_a_duration_on_a_page_says_within_which_bounds_it_is(ms: int) -> None:
    answer = Answer("c", 0, 0, None, about={"step": judge_pages.step})
    shown = judge_pages.seconds_of(parts.marked(ms))
    assert agrees(answer, shown, ms / 1000)
    assert not agrees(answer, shown, ms / 1000 - 3600)
    assert not agrees(answer, shown, ms / 1000 + 3600)
    assert not agrees(answer, None, ms / 1000)


def test_a_page_is_read_by_the_names_of_its_tables() -> None:
    rows = [row("orders", 0, 40), row("orders", 1, None)]
    places = [Place("orders", partition) for partition in (0, 1)]
    made = view("late", rows, [Wait(185_400), Wait(None)], described("late", member("m", *places)))
    page = judge_pages.Page(group_page(snapshot(made), made, [], [], 1_700_000_000_000))
    uncommitted, committed = page.tables["partitions"]  # the worst first
    assert (committed["committed offset"], committed["time lag"]) == ("40", "3 min 5 s")
    assert uncommitted["committed offset"] == "none"
    assert page.numbers[0][1]["type"] == "Classic"
    assert len(page.instants) == 1
    series: Series = {}
    judge_pages.group_series(series, "late", page)
    (topic,) = topics_of(snapshot(made))
    judge_pages.topic_series(series, "orders", judge_pages.Page(topic_page(snapshot(made), topic, {}, 1)))
    assert list(series[MEMBER_PARTITIONS].values()) == [2]
    assert series[BY_STATUS] == {("late", "orders", "uncommitted"): 1}
