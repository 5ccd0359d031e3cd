"""kafka-consumer-group-reset: the test plan of KIP-122's first version (T01–T19, K122-62), here and on Apache Kafka.

T01 and T10 need no broker, and are beside the units, too.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.acts import committed_offsets
from tests.cli.stages import FIRST_MS, PATIENCE_S, Live, Stage, set_up
from tests.conformance.brokers import PROPERTIES

from groupkeeper.cli.dropin.kafka_consumer_group_reset import main
from groupkeeper.client.addresses import parse_bootstrap_servers
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.client.opener import open_connection
from groupkeeper.client.security.transport import Security
from groupkeeper.client.settings import Settings
from groupkeeper.operations import group_reset
from groupkeeper.operations.plans.changes import ApplyResult
from groupkeeper.operations.plans.journal import Journal
from groupkeeper.operations.plans.kip122 import ResetPlan
from groupkeeper.operations.times import utc_text
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import UnknownMemberId
from groupkeeper.testing.background import BackgroundBroker

TYPES = ("classic", "consumer")
COORDINATOR_CODES = (14, 15, 16)
OLDEST = 5  # of partition 1
LATEST = (10, 20, 0)
DAY_MS = 86_400_000


class Ran(NamedTuple):
    """What a command printed, and its exit status."""

    status: int
    output: str
    errors: str

    @property
    def rows(self) -> list[list[str]]:
        """The lines of a table below its header."""
        return [line.split(maxsplit=7) for line in self.output.splitlines()[1:]]


class Scene(NamedTuple):
    """A topic that the group consumes, one that it doesn't, and the group's id."""

    servers: str
    group: str
    topic: str
    other: str
    run: Callable[..., Ran]
    folder: Path

    @property
    def offsets(self) -> dict[int, int]:
        """The group's committed offsets of the topic, by partition."""
        found = committed_offsets(self.servers, self.group)
        assert all(tp.topic == self.topic for tp in found)
        return {tp.partition: offset for tp, offset in found.items()}

    def plan(self, topics: Any, **more: Any) -> str:
        """A file with a plan of the group."""
        path = self.folder / "plan.json"
        path.write_text(json.dumps({"version": 1, "offsets": {"group_id": self.group, "topics": topics}, **more}))
        return str(path)

    def generate(self, *words: str) -> dict[int, int]:
        """The offsets of the topic in the plan that --generate prints."""
        ran = self.run("--generate", "--group", self.group, "--topics", self.topic, *words)
        assert ran.status == 0, ran
        document = json.loads(ran.output)
        assert (document["version"], document["offsets"]["group_id"]) == (1, self.group)
        ((topic, entries),) = [pair for one in document["offsets"]["topics"] for pair in one.items()]
        assert topic == self.topic
        return {entry["partition"]: entry["offset"] for entry in entries}


@pytest.fixture(scope="module", params=["groupkeeper", pytest.param("apache", marks=pytest.mark.conformance)])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "apache":
        yield request.getfixturevalue("apache_kafka").bootstrap_servers
        return
    with BackgroundBroker(properties=PROPERTIES) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(params=TYPES)
def group_type(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def scene(servers: str, group_type: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Scene:
    """The topic has 10 records, 20 of which the first 5 are gone, and none; the group is at 4 and 12, and empty."""
    if group_type == "consumer":
        member_id = asyncio.run(heartbeat(servers, name, "", 0, []))
        asyncio.run(heartbeat(servers, name, member_id, -1, []))
    other = f"{name}-other"
    stage = Stage(
        name,
        {name: (10, 20, 0), other: (3,)},
        {(name, 1): OLDEST},
        {name: {(name, 0): OffsetAndMetadata(4), (name, 1): OffsetAndMetadata(12, None, "note")}},
    )
    asyncio.run(set_up(stage, servers, tmp_path))

    def run(*words: str) -> Ran:
        capsys.readouterr()
        return Ran(main(["--bootstrap-server", servers, *words]), *capsys.readouterr())

    return Scene(servers, name, name, other, run, tmp_path)


async def heartbeat(servers: str, group: str, member_id: str, epoch: int, topics: Sequence[str]) -> str:
    """Join a group of the new protocol (epoch 0), or leave it (−1)."""
    address = parse_bootstrap_servers(servers)[0]
    connection = await open_connection(address, Settings(client_id="member"), Security(), PATIENCE_S)
    member_id = member_id or f"member-of-{group}"
    request = m.ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=300_000,
        subscribed_topic_names=list(topics) or ["nothing-of-that-name"],
        topic_partitions=[],
    )
    async with Admin(servers) as admin, asyncio.timeout(PATIENCE_S):
        while True:
            (await admin.find_coordinators([group])).all()
            answer = await connection.ask(request, 1, m.ConsumerGroupHeartbeatResponse, PATIENCE_S)
            if answer.error_code not in COORDINATOR_CODES:
                break
    connection.abort()
    assert answer.error_code == 0, answer
    return member_id


async def join(scene: Scene, group_type: str, topics: Sequence[str]) -> None:
    """A member that subscribes to topics joins the scene's group, and stays."""
    if group_type == "consumer":
        await heartbeat(scene.servers, scene.group, "", 0, topics)
    else:
        live = Live(scene.group, "member", topics, {topic: [0] for topic in topics})
        await set_up(Stage("live", live=[live]), scene.servers, scene.folder)


def entries(offsets: Mapping[int, int]) -> list[dict[str, int]]:
    return [{"partition": partition, "offset": offset} for partition, offset in offsets.items()]


def at(record: int) -> str:
    """The time of a record, as --reset-to-datetime takes it."""
    return utc_text(FIRST_MS + 1000 * record)


def period(record: float) -> str:
    """A period that reaches back to a little before a record."""
    return f"PT{(time.time_ns() // 10**6 - FIRST_MS) / 1000 - record + 0.5:.3f}S"


# T02, K122-04, K122-49
def test_t02_topics_consumed_are_found(scene: Scene, group_type: str) -> None:
    ran = scene.run("--generate", "--group", scene.group)
    assert [list(one) for one in json.loads(ran.output)["offsets"]["topics"]] == [[scene.topic]]
    asyncio.run(join(scene, group_type, [scene.other]))
    ran = scene.run("--generate", "--group", scene.group, "--reset-to-datetime", at(0))
    topics = [list(one) for one in json.loads(ran.output)["offsets"]["topics"]]
    assert (ran.status, topics) == (0, [[scene.topic], [scene.other]])
    assert scene.offsets == {0: 4, 1: 12}  # K122-40


# T03, K122-05, K122-30, K122-31
def test_t03_current_offsets(scene: Scene) -> None:
    assert scene.generate() == {0: 4, 1: 12}
    ran = scene.run("--generate", "--group", scene.group, "--topics", scene.topic)
    assert f"WARN: {scene.topic}-2: the group has no committed offset" in ran.errors


# T04, K122-32, K122-41; K122-10, K122-X1: both names of the option; K122-X4: the first record from then on
def test_t04_an_offset_is_found_for_a_datetime(scene: Scene) -> None:
    assert scene.generate("--reset-to-datetime", at(7)) == {0: 7, 1: 7, 2: 0}
    assert scene.generate("--reset-to-timestamp", at(7).removesuffix("Z")) == {0: 7, 1: 7, 2: 0}
    assert scene.generate("--reset-to-datetime", at(6).replace(".000Z", ".0001Z")) == {0: 6, 1: 6, 2: 0}
    assert scene.generate("--reset-to-datetime", at(6).replace(".000Z", ".001Z")) == {0: 7, 1: 7, 2: 0}


# T05, K122-38
@pytest.mark.parametrize("long_ago", ["1999-12-31T23:59:59", "1969-12-31T23:59:59.999", "-0044-03-15T12:00:00Z"])
def test_t05_a_datetime_before_all_records_is_the_oldest_offset(scene: Scene, long_ago: str) -> None:
    assert scene.generate("--reset-to-datetime", long_ago) == {0: 0, 1: OLDEST, 2: 0}


# T06, K122-39
@pytest.mark.parametrize("far_off", [at(20), "9999-12-31T24:00:00", "999999999999-01-01T00:00:00"])
def test_t06_a_datetime_after_all_records_is_the_latest_offset(scene: Scene, far_off: str) -> None:
    assert scene.generate("--reset-to-datetime", far_off) == dict(enumerate(LATEST))


# T07, K122-35
def test_t07_an_offset_is_found_for_a_period(scene: Scene) -> None:
    assert scene.generate("--reset-from-period", period(8)) == {0: 8, 1: 8, 2: 0}


# T08, K122-35, K122-38
def test_t08_a_period_that_reaches_before_all_records_is_the_oldest_offset(scene: Scene) -> None:
    assert scene.generate("--reset-from-period", "P50Y") == {0: 0, 1: OLDEST, 2: 0}
    assert scene.generate("--reset-from-period", "P99999Y") == {0: 0, 1: OLDEST, 2: 0}


# T09, K122-35, K122-37, K122-39
def test_t09_a_period_that_ends_after_all_records_is_the_latest_offset(scene: Scene) -> None:
    assert scene.generate("--reset-from-period", "P1D") == dict(enumerate(LATEST))
    assert scene.generate("--reset-from-period", "-P1Y") == dict(enumerate(LATEST))


# T10, K122-22, K122-23, K122-24, K122-25
def test_t10_the_structure_of_a_plan(scene: Scene) -> None:
    listed = [{scene.topic: entries({1: 12, 0: 4})}]
    for plan in (scene.plan(listed), scene.plan(listed[0], comment="mine")):
        assert scene.run("--verify", "--reset-json-file", plan).status == 0
    ran = scene.run("--execute", "--reset-json-file", scene.plan([{scene.topic: entries({0: 7}) * 2}]))
    assert (ran.status, ran.output) == (1, "")
    assert "partition 0 is listed twice" in ran.errors
    assert scene.offsets == {0: 4, 1: 12}


def verified(scene: Scene, plan: str) -> dict[tuple[str, str], list[str]]:
    """The rows of --verify by topic and partition."""
    ran = scene.run("--verify", "--reset-json-file", plan)
    assert ran.status == 0, ran
    header = "GROUP TOPIC PARTITION PLAN-OFFSET CURRENT-OFFSET OLDEST-OFFSET LATEST-OFFSET STATUS"
    assert ran.output.split("\n")[0].split() == header.split()
    assert f"Group {scene.group} is Empty." in ran.errors  # K122-48
    assert all(row[0] == scene.group for row in ran.rows)
    warned = sum(row[7].startswith("WARN: ") for row in ran.rows)
    assert ran.errors.count("WARN: ") == warned  # K122-44
    return {(row[1], row[2]): row[3:] for row in ran.rows}


# T11, T12, T13, T14, K122-43, K122-44, K122-45, K122-46, K122-49
def test_t11_to_t14_verify_warns_of_what_will_not_be_done_as_written(scene: Scene) -> None:
    missing = f"{scene.topic}-missing"
    offsets = {0: 7, 1: OLDEST - 1, 2: 1, 3: 0}
    plan = scene.plan([{scene.topic: entries(offsets)}, {missing: entries({0: 0})}, {scene.other: entries({0: 1})}])
    rows = verified(scene, plan)
    assert rows[scene.topic, "0"] == ["7", "4", "0", "10", "OK"]
    assert rows[missing, "0"][:4] == ["0", "-", "-", "-"]
    assert rows[missing, "0"][4] == "WARN: topic does not exist, nothing will be executed for it"  # T11
    assert rows[scene.topic, "3"][4] == "WARN: partition does not exist, nothing will be executed for it"  # T12
    assert rows[scene.other, "0"][4].startswith("WARN: topic is not consumed by the group, nothing")  # T13
    assert rows[scene.topic, "1"][:4] == ["4", "12", "5", "20"]
    assert rows[scene.topic, "1"][4].endswith("reset to the oldest offset 5")  # T14
    assert rows[scene.topic, "2"][4].endswith("reset to the latest offset 0")
    assert scene.offsets == {0: 4, 1: 12}


# T14, K122-45: the bounds are inside the range
def test_t14_bounds_are_in_range(scene: Scene) -> None:
    for offsets in ({0: 0, 1: OLDEST, 2: 0}, dict(enumerate(LATEST))):
        rows = verified(scene, scene.plan([{scene.topic: entries(offsets)}]))
        assert [row[4] for row in rows.values()] == ["OK"] * 3
    rows = verified(scene, scene.plan([{scene.topic: entries({0: 11, 1: 21, 2: -1})}]))
    assert [row[4].split()[-1] for row in rows.values()] == ["10", "20", "0"]


# T15, K122-48, K122-50, K122-56
def test_t15_the_group_must_be_inactive(scene: Scene, group_type: str) -> None:
    asyncio.run(join(scene, group_type, [scene.topic]))
    plan = scene.plan([{scene.topic: entries({0: 7})}])
    saved = scene.folder / "saved.json"
    for words in (
        ["--execute", "--reset-json-file", plan],
        ["--generate-and-execute", "--group", scene.group, "--reset-to-datetime", at(1), "--output-file", str(saved)],
    ):
        ran = scene.run(*words)
        assert (ran.status, ran.output) == (1, ""), ran
        assert "the group is active (" in ran.errors
        assert "nothing was changed" in ran.errors
    assert not saved.exists()
    assert scene.run("--verify", "--reset-json-file", plan).status == 0
    assert scene.offsets == {0: 4, 1: 12}


# T16, K122-47, K122-53, K122-55, K122-57
def test_t16_offsets_are_updated(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(scene.folder / "journal.jsonl")
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", str(journal.path))
    path = str(scene.folder / "made.json")
    words = ["--group", scene.group, "--reset-to-datetime", at(7), "--output", path]
    assert scene.run("--generate", *words).output == ""
    for _ in range(2):
        ran = scene.run("--execute", "--reset-json-file", path)
        assert ran.output.split("\n")[0].split() == ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]
        assert ran.rows == [[scene.group, scene.topic, str(n), str(o)] for n, o in enumerate((7, 7, 0))]
        assert (ran.status, scene.offsets) == (0, {0: 7, 1: 7, 2: 0})
    assert [row[:2] for row in verified(scene, path).values()] == [["7", "7"], ["7", "7"], ["0", "0"]]
    (first, second), _ = journal.summaries()
    assert (first.groups, first.result, second.result) == ((scene.group,), ApplyResult.APPLIED, ApplyResult.APPLIED)


# T17, T18, T19, K122-51, K122-52; K122-X3: the nearer end; K122-X8: topics that it doesn't consume are left alone
def test_t17_to_t19_execute_warns_and_leaves_alone(scene: Scene) -> None:
    missing = f"{scene.topic}-missing"
    offsets = {0: 999, 1: -3, 3: 0}
    plan = scene.plan({scene.topic: entries(offsets), missing: entries({0: 0}), scene.other: entries({0: 1})})
    ran = scene.run("--execute", "--reset-json-file", plan)
    assert ran.status == 0
    assert ran.rows == [[scene.group, scene.topic, "0", "10"], [scene.group, scene.topic, "1", "5"]]
    for place, warning in (
        (f"{missing}-0", "topic does not exist"),  # T17
        (f"{scene.other}-0", "topic is not consumed by the group"),
        (f"{scene.topic}-3", "partition does not exist"),  # T18
        (f"{scene.topic}-0", "offset 999 is out of range, it will be reset to the latest offset 10"),  # T19
        (f"{scene.topic}-1", "offset -3 is out of range, it will be reset to the oldest offset 5"),
    ):
        assert f"WARN: {place}: {warning}" in ran.errors
    assert scene.offsets == {0: 10, 1: OLDEST}  # also: nothing of the other topics


# K122-02, K122-56
def test_generate_and_execute(scene: Scene) -> None:
    saved = scene.folder / "saved.json"
    ran = scene.run(
        "--generate-and-execute", "--group", scene.group, "--reset-to-datetime", at(6), "--output", str(saved)
    )
    assert (ran.status, scene.offsets) == (0, {0: 6, 1: 6, 2: 0})
    assert ran.rows == [[scene.group, scene.topic, str(n), str(o)] for n, o in enumerate((6, 6, 0))]
    assert json.loads(saved.read_text())["offsets"]["group_id"] == scene.group


# K122-54
def test_a_member_that_joins_between_check_and_commit(scene: Scene, group_type: str) -> None:
    async def race() -> None:
        async with Admin(scene.servers) as admin:
            report = await group_reset.examine(admin, ResetPlan(scene.group, {TopicPartition(scene.topic, 0): 7}))
            await join(scene, group_type, [scene.topic])
            done, troubles = await group_reset.execute(admin, report, None)
        assert done == {}
        assert [(trouble.topic_partition, type(trouble.failure)) for trouble in troubles] == [
            (TopicPartition(scene.topic, 0), UnknownMemberId)
        ]

    asyncio.run(race())
    assert scene.offsets == {0: 4, 1: 12}


# K122-42
def test_a_topic_that_does_not_exist_is_an_error(scene: Scene) -> None:
    path = scene.folder / "none.json"
    missing = f"{scene.topic}-missing"
    words = ["--group", scene.group, "--topics", f"{scene.topic},{missing}", "--output-file", str(path)]
    ran = scene.run("--generate", *words)
    assert (ran.status, ran.output, ran.errors) == (1, "", f"Error: topic {missing} does not exist\n")
    assert not path.exists()


# K122-43, K122-50: no such group
def test_a_group_that_does_not_exist(servers: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bootstrap-server", servers, "--generate", "--group", name]) == 0
    output, errors = capsys.readouterr()
    assert json.loads(output)["offsets"] == {"group_id": name, "topics": []}
    assert f"Group {name} does not exist." in errors
