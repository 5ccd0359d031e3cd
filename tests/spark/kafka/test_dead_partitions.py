"""Partitions of the offsets topic without a leader: what is in the others is known all the same."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from tests.acts import ask, commit, new_topic
from tests.apache_kafka import require as require_apache_kafka
from tests.spark.kafka.test_source import PATIENCE_S
from tools.apache_kafka import ApacheKafka

from groupkeeper.broker.apis import logs
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.client.admin import Admin
from groupkeeper.pipeline.jobs.following.job import follow
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.jobs.watch import Problem, Watch
from groupkeeper.protocol.errors import UnknownServerError
from groupkeeper.protocol.java_hash import partition_of_group
from groupkeeper.protocol.messages.list_offsets_request import ListOffsetsPartition
from groupkeeper.testing.background import BackgroundBroker

OFFSETS_TOPIC = "__consumer_offsets"
PARTITIONS = 4
GROUPS = [f"group-{number}" for number in range(12)]
PROPERTIES = {"offsets.topic.num.partitions": str(PARTITIONS)}


class Stage(NamedTuple):
    """A cluster: `dies` ends some partitions of its offsets topic, and `heals` brings them back; `dead`: which. The
    `topic` has one partition, which lives.
    """

    servers: str
    topic: str
    dead: frozenset[int]
    dies: Callable[[], None]
    heals: Callable[[], None]

    def names(self, *, dead: bool) -> list[str]:
        return [name for name in GROUPS if (partition_of_group(name, PARTITIONS) in self.dead) == dead]


@pytest.fixture(params=["embedded", pytest.param("apache", marks=pytest.mark.conformance)])
def stage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    if request.param == "embedded":
        with BackgroundBroker(properties=PROPERTIES) as broker:
            yield embedded(broker.bootstrap_servers, monkeypatch)
        return
    require_apache_kafka()
    with ApacheKafka({**PROPERTIES, "broker.session.timeout.ms": "3000"}) as first, first.another_node() as second:
        admin = AdminClient({"bootstrap.servers": first.bootstrap_servers})
        admin.create_topics([NewTopic("lives", 1, replica_assignment=[[1]])])["lives"].result(PATIENCE_S)
        commit(first.bootstrap_servers, "first", {("lives", 0): 0})
        led = ask(first.bootstrap_servers, leaders)
        dead = frozenset(partition for partition, leader in led.items() if leader == 2)
        assert 0 < len(dead) < PARTITIONS
        yield Stage(first.bootstrap_servers, "lives", dead, second.kill, second.start)


async def leaders(admin: Admin) -> dict[int, int]:
    (described,) = (await admin.describe_topics([OFFSETS_TOPIC])).all().values()
    return {each.partition: -1 if each.leader is None else each.leader.id for each in described.partitions}


def embedded(servers: str, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Its partitions always have a leader: here the broker refuses requests for some."""
    dead = frozenset({1, 3})
    is_dead = threading.Event()
    find = logs._find

    async def found(broker: Broker, call: Call, log: Any, part: ListOffsetsPartition, committed: bool) -> Any:
        number = part.partition_index
        if is_dead.is_set() and number in dead and log is broker.topics.partition(OFFSETS_TOPIC, number):
            raise UnknownServerError
        return await find(broker, call, log, part, committed)

    monkeypatch.setattr(logs, "_find", found)
    return Stage(servers, new_topic(servers, 1), dead, is_dead.set, is_dead.clear)


def lags(tables: Path) -> dict[str, tuple[int, int | None]]:
    """The committed offset and the lag by group."""
    rows = pq.read_table(tables / "lag").to_pylist()
    return {row["group_id"]: (row["committed_offset"], row["lag"]) for row in rows if row["group_id"] in GROUPS}


@pytest.mark.long
@pytest.mark.timeout(400)
def test_groups_of_other_partitions_are_known(spark: SparkSession, stage: Stage, tmp_path: Path) -> None:
    topic = stage.topic
    options = {"kafka.bootstrap.servers": stage.servers, "cluster": "c"}
    for name in GROUPS:
        commit(stage.servers, name, {(topic, 0): 0})
    assert not snapshot(spark, options, str(tmp_path)).problems
    assert lags(tmp_path) == dict.fromkeys(GROUPS, (0, 0))

    stage.dies()
    alive, dead = stage.names(dead=False), stage.names(dead=True)
    for name in alive:
        commit(stage.servers, name, {(topic, 0): 0})
    (problem,) = snapshot(spark, options, str(tmp_path)).problems
    names = ", ".join(map(str, sorted(stage.dead)))
    assert problem.cluster == "c"
    assert (
        f"{len(stage.dead)} of {PARTITIONS} partitions of {OFFSETS_TOPIC} cannot be read ({names}): " in problem.message
    )
    assert lags(tmp_path) == dict.fromkeys(alive, (0, 0)) | dict.fromkeys(dead, (0, None))
    (fresh,) = snapshot(spark, options, str(tmp_path / "fresh")).problems
    assert fresh == problem
    assert lags(tmp_path / "fresh") == dict.fromkeys(alive, (0, 0))

    stage.heals()
    for name in dead:
        commit(stage.servers, name, {(topic, 0): 0})
    for tables in (tmp_path, tmp_path / "fresh"):
        assert not snapshot(spark, options, str(tables)).problems
        assert lags(tables) == dict.fromkeys(GROUPS, (0, 0))


class Script(Watch):
    """Lets partitions die when all groups are known, and heals them when the lag of some no longer is."""

    def __init__(self, stage: Stage, tables: Path, steps: list[Callable[[dict[str, tuple[int, int | None]]], bool]]):
        self.stop = threading.Event()
        self.told: list[Problem] = []
        self._stage, self._tables, self._steps = stage, tables, steps
        self._until = time.monotonic() + 3 * PATIENCE_S

    def problem(self, problem: Problem) -> None:
        self.told.append(problem)

    def waiting(self) -> None:
        if self._steps[0](lags(self._tables)):
            del self._steps[0]
        if not self._steps or time.monotonic() > self._until:
            self.stop.set()


@pytest.mark.long
@pytest.mark.timeout(400)
def test_partitions_die_and_come_back_meanwhile(spark: SparkSession, stage: Stage, tmp_path: Path) -> None:
    topic = stage.topic
    for name in GROUPS:
        commit(stage.servers, name, {(topic, 0): 0})
    alive, dead = stage.names(dead=False), stage.names(dead=True)

    def all_known(found: dict[str, tuple[int, int | None]]) -> bool:
        if found != dict.fromkeys(GROUPS, (0, 0)):
            return False
        stage.dies()
        commit(stage.servers, alive[0], {(topic, 0): 5})
        return True

    def some_unknown(found: dict[str, tuple[int, int | None]]) -> bool:
        if found != {**dict.fromkeys(alive, (0, 0)), alive[0]: (5, 0), **dict.fromkeys(dead, (0, None))}:
            return False
        stage.heals()
        commit(stage.servers, dead[0], {(topic, 0): 7})
        return True

    def all_known_again(found: dict[str, tuple[int, int | None]]) -> bool:
        return found == {**dict.fromkeys(GROUPS, (0, 0)), alive[0]: (5, 0), dead[0]: (7, 0)}

    steps: list[Callable[[dict[str, tuple[int, int | None]]], bool]] = [all_known, some_unknown, all_known_again]
    script = Script(stage, tmp_path, steps)
    options = {"kafka.bootstrap.servers": stage.servers, "cluster": "c"}
    follow(spark, options, str(tmp_path), script.stop, script, interval_s=0.2, refresh_s=0.5)
    assert not steps, (script.told, lags(tmp_path))
    assert any("cannot be read" in problem.message for problem in script.told)
    places = [(row["log_partition"], row["log_offset"]) for row in pq.read_table(tmp_path / "commits").to_pylist()]
    assert len(set(places)) == len(places)
