"""Clones between two Apache Kafkas by commands alone: truth are the numbers and words that producers wrote."""

import asyncio
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer
from confluent_kafka import TopicPartition as Place
from tests.acts import ask, end_of, make_topic, produce
from tests.apache_kafka import require_streams
from tests.cli.plans.test_clones_of_share_groups import DONE, FIRST_DONE, GROUP, LAST_DONE, RECORDS, TOPIC, work
from tests.conformance.brokers import PROPERTIES, wait_for
from tests.conformance.streams_application import WordCount, committed, counted
from tests.copies import FIRST_MS, PATIENCE_S, Item, Writer, items
from tests.mirroring import EXACT, log_of
from tools.apache_kafka import ApacheKafka, run_tool

from groupkeeper.cli.main import main
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans.document import read
from groupkeeper.operations.plans.model import Change

pytestmark = [pytest.mark.conformance, pytest.mark.usefixtures("apache_jars"), pytest.mark.timeout(300)]

SMALL = {"share.coordinator.state.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
OTHERS = [Item(-number, None, b"another's", FIRST_MS - 5, (("n", b"-%d" % number),)) for number in range(1, 40)]
FROM_EAST, TO_WEST = ["--from-context", "east"], ["--context", "west"]

Operator = Callable[..., str]
"""Runs a command of groupkeeper, and returns what it says; `status`: the exit status that it is to have."""


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[str, str]]:
    with ApacheKafka(PROPERTIES | SMALL) as here, ApacheKafka(PROPERTIES | SMALL) as there:
        yield here.bootstrap_servers, there.bootstrap_servers


@pytest.fixture
def operator(
    clusters: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Operator:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", str(tmp_path / "journal.jsonl"))

    def run(*words: str, status: int = 0) -> str:
        capsys.readouterr()
        ended = main([*words])
        said = "".join(capsys.readouterr())
        assert ended == status, said
        return said

    for name, servers in zip(("east", "west"), clusters, strict=True):
        run("context", "add", name, "--bootstrap-server", servers)
    return run


def changes_of(file: str) -> dict[tuple[str, TopicPartition], Change]:
    plan = read(Path(file).read_text())
    return {(group.group_id, tp): change for group in plan.groups for tp, change in group.changes.items()}


def official_starts(servers: str) -> list[tuple[str, str, str]]:
    """Topic, partition and start offset, as Kafka's own tool has them."""
    done = run_tool("share-groups", "--bootstrap-server", servers, "--describe", "--group", GROUP, "--offsets")
    return re.findall(rf"^{GROUP} +(\S+) +(\d+) +(\S+)", done.stdout, re.MULTILINE)


def test_a_share_group_goes_on_where_it_was(clusters: tuple[str, str], operator: Operator, tmp_path: Path) -> None:
    here, there = clusters
    for servers in clusters:
        make_topic(servers, TOPIC, 2)
    Writer(here, TOPIC, **{"compression.type": "lz4"}).write(items(RECORDS))
    Writer(there, TOPIC).write(OTHERS)
    Writer(there, TOPIC, True, **{"compression.type": "zstd"}).write(items(RECORDS))
    asyncio.run(work(here))
    numbers = log_of(there, TOPIC).numbers
    first = next(offset for offset, number in numbers.items() if number == 0)
    assert (TOPIC, "0", "0") in official_starts(here)
    assert f"1 share group left out: plan for each of them by its name ({GROUP})" in operator(
        "plan", "clone", "--all-groups", *FROM_EAST, *TO_WEST
    )
    file = str(tmp_path / "plan.json")
    assert f"{GROUP} has no start offset yet in {TOPIC}-1" in operator(
        "plan", "clone", GROUP, *FROM_EAST, *TO_WEST, "--save", file
    )
    ((row,),) = [group["partitions"] for group in json.loads(Path(file).read_text())["groups"]]
    assert (row["skipped"], row["replayed"]) == (0, DONE)
    operator("apply", file, "--create", "--execute", *TO_WEST)
    assert official_starts(there) == [(TOPIC, "0", str(first))]
    operator("undo", "--execute", "--confirm", "1", *TO_WEST)
    assert official_starts(there) == []
    operator("apply", file, "--create", "--execute", *TO_WEST)
    options = ["--group", GROUP, "--topic", TOPIC, "--max-messages", str(RECORDS), "--timeout-ms", "20000"]
    show = ["--formatter-property", "print.offset=true", "--formatter-property", "print.value=false"]
    done = run_tool("console-share-consumer", "--bootstrap-server", there, *options, *show)
    delivered = [numbers[int(offset)] for offset in re.findall(r"Offset:(\d+)", done.stdout)]
    assert sorted(delivered) == list(range(RECORDS)), done
    assert sum(FIRST_DONE <= number <= LAST_DONE for number in delivered) == DONE


def messages_of(servers: str, topic: str, partition: int) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "mirror", "enable.auto.commit": False,
                         "enable.partition.eof": True, "auto.offset.reset": "earliest"})  # fmt: skip
    consumer.assign([Place(topic, partition, 0)])
    found: list[Message] = []
    while True:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, topic
        if message.error():
            consumer.close()
            return found
        found.append(message)


def mirror(source: str, target: str, topic: str, partitions: int) -> None:
    """Copy a topic in compressed transactions: its records keep their partitions and times, not their offsets."""
    producer = Producer(
        {"bootstrap.servers": target, "transactional.id": f"{topic}-{time.time_ns()}", "compression.type": "zstd"}
    )
    producer.init_transactions(PATIENCE_S)
    for partition in range(partitions):
        some = messages_of(source, topic, partition)
        for start in range(0, len(some), 25):
            producer.begin_transaction()
            for one in some[start : start + 25]:
                producer.produce(topic, one.value(), one.key(), partition, timestamp=one.timestamp()[1])
            producer.commit_transaction(PATIENCE_S)


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_an_application_of_kafka_streams_goes_on(
    clusters: tuple[str, str], operator: Operator, tmp_path: Path, protocol: str
) -> None:
    require_streams()
    here, there = clusters
    group, source, target = (f"{name}-{protocol}" for name in ("counts", "words", "out"))
    internal = [f"{group}-words-repartition", f"{group}-counts-changelog"]
    words, more = ([f"word-{number % 7}" for number in range(count)] for count in (120, 60))
    for servers in clusters:
        make_topic(servers, source, 2)
        make_topic(servers, target)
    produce(here, source, words, (0, 1))
    with WordCount(here, group, source, target, tmp_path, {"group.protocol": protocol}) as application:
        wait_for(lambda: committed(here, group, source) == {0: 60, 1: 60}, "commits", 60)
        application.stop()  # words that wait in the topic for repartitioning are counted in the other cluster
    mirror(here, there, source, 2)
    file = str(tmp_path / "plan.json")
    clone = ["plan", "clone", group, *FROM_EAST, *TO_WEST, "--save", file]
    said = operator(*clone, status=1)
    assert all(f"its copy {topic} is not there" in said for topic in internal)
    for topic in internal:
        make_topic(there, topic, 2)
        mirror(here, there, topic, 2)
    assert "restores its state from copies of" in operator(*clone)
    operator("apply", file, "--create", "--execute", *TO_WEST)
    produce(there, source, more, (0, 1))
    with WordCount(there, group, source, target, tmp_path, {"group.protocol": protocol}) as application:
        expected = Counter(words + more)
        wait_for(lambda: {word: max(counts) for word, counts in counted(there, target).items()} == expected, "all", 60)
        application.stop()
    for counts in counted(there, target).values():
        assert counts == list(range(counts[0], counts[0] + len(counts)))  # none is counted twice


def test_groups_by_a_pattern(clusters: tuple[str, str], operator: Operator, tmp_path: Path) -> None:
    """One topic in transactions, copied behind other records; one with times of copying; one with more partitions."""
    here, there = clusters
    topics = ("orders", "clicks", "uneven")
    for servers, partitions in zip(clusters, (2, 3), strict=True):
        for topic in topics:
            make_topic(servers, topic, partitions if topic == "uneven" else 1)
    orders = Writer(here, "orders", True, **{"compression.type": "gzip"})
    orders.write(items(300))
    orders.write(items(9, first=100_000), commits=False)
    orders.write(items(300, first=300))
    Writer(there, "orders").write(OTHERS)
    Writer(there, "orders", **{"compression.type": "zstd"}).write(items(600))
    for topic in ("clicks", "uneven"):
        Writer(here, topic).write(items(600))
        Writer(there, topic, True).write(items(600), keeps_times=topic != "clicks")
    rng = random.Random(1)
    groups = [f"app-{number:02}" for number in range(30)] + ["app-test", "tool"]
    offsets = {
        group: {TopicPartition(one, 0): OffsetAndMetadata(rng.randrange(end_of(here, one) + 1)) for one in topics}
        for group in groups
    }
    for done in ask(here, lambda admin: admin.alter_offsets_of_groups(offsets)).all().values():
        done.all()
    file = str(tmp_path / "plan.json")
    clone = ["plan", "clone", "--group", "app-*", "--except", "*-test", *FROM_EAST, *TO_WEST, "--save", file]
    said = operator(*clone, status=1)
    assert said.count("the topic has 2 partitions in the source and 3 in the target") == 30
    planned = changes_of(file)
    assert len(planned) == 60
    operator(*clone, "--topic", "uneven:0")
    planned |= changes_of(file)
    assert {group for group, _ in planned} == set(groups[:30])
    logs = {topic: (log_of(here, topic), log_of(there, topic)) for topic in topics}
    for (group, tp), change in planned.items():
        ours, theirs = logs[tp.topic]
        assert change.after is not None
        judged = ours.judged(offsets[group][tp].offset, theirs, change.after.offset)
        assert (judged, change.certainty in EXACT or change.certainty == "time") == ((0, 0), True), (group, tp, change)
