"""A real Kafka Streams application: kafka-streams-groups, ours and the official one, on our broker and Apache Kafka.

It counts words, by a topic for repartitioning and a store with a changelog. After a reset it has to count all of them
again from one; what it wrote says whether it did.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.acts import produce
from tests.apache_kafka import require_streams
from tests.cli.golden import Output
from tests.cli.recorded import sorted_lines
from tests.conformance.brokers import PROPERTIES, GroupkeeperBroker, RunningBroker, wait_for
from tests.conformance.conftest import make_topic
from tests.conformance.official import ours
from tests.conformance.streams_application import WordCount, committed, counted
from tools.apache_kafka import NEWEST, ApacheKafka, run_tool

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(500)]

GROUP, SOURCE, TARGET = "counts", "words-in", "counts-out"
INTERNAL = {f"{GROUP}-words-repartition", f"{GROUP}-counts-changelog"}
PARTITIONS = 2
WORDS = [f"word-{number * number % 7}" for number in range(120)]
COUNTS = Counter(WORDS)
ONCE = {word: list(range(1, count + 1)) for word, count in COUNTS.items()}
TWICE = {word: counts * 2 for word, counts in ONCE.items()}
GUARANTEES = ("at_least_once", "exactly_once_v2")
VIEWS = [
    ("--list",),
    ("--list", "--state"),
    ("--list", "--state", "stable"),
    *(
        ("--describe", "--group", GROUP, *view)
        for view in (
            (),
            ("--offsets",),
            ("--verbose",),
            ("--members",),
            ("--members", "--verbose"),
            ("--state",),
            ("--state", "--verbose"),
            ("--topology",),  # the official tool of 4.3.1 doesn't have it
        )
    ),
    ("--describe", "--all-groups", "--state"),
    ("--reset-offsets", "--group", GROUP, "--all-input-topics", "--to-earliest", "--dry-run"),  # refused, it is active
    ("--delete", "--group", GROUP),
    ("--delete-offsets", "--group", GROUP, "--input-topic", SOURCE),
]
EARLIEST = ("--reset-offsets", "--group", GROUP, "--all-input-topics", "--to-earliest")
TO_RESET = [
    ("--list", "--state"),
    ("--describe", "--group", GROUP, "--state", "--verbose"),
    ("--describe", "--group", GROUP),
    (*EARLIEST, "--dry-run"),
    (*EARLIEST, "--dry-run", "--export"),
    ("--reset-offsets", "--group", GROUP, "--input-topic", f"{SOURCE}:1", "--shift-by", "-5", "--dry-run"),
    (*EARLIEST, "--execute", "--delete-all-internal-topics"),
]
TO_DELETE = [
    ("--delete-offsets", "--group", GROUP, "--input-topic", f"{SOURCE}:0"),
    ("--delete-offsets", "--group", GROUP, "--all-input-topics"),
    ("--delete", "--group", GROUP, "--delete-all-internal-topics"),
    ("--list",),
    ("--describe", "--group", GROUP),
]

Tool = Callable[[str, str, Sequence[str]], Output]
"""Runs a tool at brokers with arguments."""


def run_ours(name: str, servers: str, arguments: Sequence[str]) -> Output:
    done = ours(name, servers, *arguments)
    return Output(done.returncode, done.stdout, done.stderr).comparable(servers, Path("/nowhere"))


def run_official(name: str, servers: str, arguments: Sequence[str]) -> Output:
    done = run_tool(name, "--bootstrap-server", servers, *arguments)
    return Output(done.returncode, done.stdout, done.stderr).comparable(servers, Path("/nowhere"))


@pytest.fixture(scope="module")
def streams_jars(apache_jars: None) -> None:
    require_streams()


@pytest.fixture(scope="module")
def real_kafka(streams_jars: None) -> Iterator[RunningBroker]:
    """An Apache Kafka that has nothing else."""
    with ApacheKafka(PROPERTIES, version=NEWEST) as broker:
        yield broker


@pytest.fixture(scope="module")
def own_broker(streams_jars: None) -> Iterator[RunningBroker]:
    broker = GroupkeeperBroker()
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture(scope="module", params=["apache", "groupkeeper"])
def servers(request: pytest.FixtureRequest) -> str:
    broker: RunningBroker = request.getfixturevalue("real_kafka" if request.param == "apache" else "own_broker")
    return broker.bootstrap_servers


@pytest.fixture(params=GUARANTEES)
def guarantee(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def scene(servers: str) -> Iterator[str]:
    """The topics of the application, words in the one that it reads; all is removed at the end."""
    with_topics(servers)
    yield servers
    without_topics(servers)


def with_topics(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    make_topic(admin, SOURCE, PARTITIONS)
    make_topic(admin, TARGET, 1)
    produce(servers, SOURCE, WORDS, range(PARTITIONS))


def topics(servers: str) -> set[str]:
    found = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=20).topics
    return {name for name in found if not name.startswith("__")}


def without_topics(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for deleting in admin.delete_topics(sorted(topics(servers))).values():
        deleting.result(20)
    wait_for(lambda: not topics(servers), "the topics to be gone")


def application(servers: str, folder: Path, protocol: str, guarantee: str) -> WordCount:
    properties = {"group.protocol": protocol, "processing.guarantee": guarantee}
    return WordCount(servers, GROUP, SOURCE, TARGET, folder, properties)


def wait_until_counted(servers: str, expected: Mapping[str, Sequence[int]]) -> None:
    """The application has written all counts and committed all that it read."""
    wait_for(lambda: sum(map(len, counted(servers, TARGET).values())) >= sum(map(len, expected.values())), "counts", 60)
    each = len(WORDS) // PARTITIONS
    wait_for(lambda: committed(servers, GROUP, SOURCE) == dict.fromkeys(range(PARTITIONS), each), "commits", 30)
    assert counted(servers, TARGET) == expected


def steady(run: Callable[[], Output]) -> Output:
    """What a view shows once it has shown the same twice: commits of the topic for repartitioning come later."""
    last = run()
    for _ in range(10):
        time.sleep(0.5)
        now = run()
        if now == last:
            return now
        last = now
    raise AssertionError(f"it changes all the time: {last}")


def test_views_of_a_running_application(scene: str, guarantee: str, tmp_path: Path) -> None:
    with application(scene, tmp_path, "streams", guarantee) as running:
        wait_until_counted(scene, ONCE)
        steady(lambda: run_ours("streams-groups", scene, ("--describe", "--group", GROUP, "--verbose")))
        for view in VIEWS:
            official = run_official("streams-groups", scene, view)
            own = run_ours("streams-groups", scene, view)
            assert sorted_lines(own) == sorted_lines(official), view
        offsets = run_ours("streams-groups", scene, ("--describe", "--group", GROUP)).output
        assert sorted(re.findall(r"^counts +(\S+) +(\d) ", offsets, re.MULTILINE)) == sorted(
            (topic, str(number)) for topic in (SOURCE, f"{GROUP}-words-repartition") for number in range(PARTITIONS)
        )
        running.stop()
    run_ours("streams-groups", scene, ("--delete", "--group", GROUP))


def life(run: Tool, servers: str, folder: Path, guarantee: str) -> list[tuple[str, Output]]:
    """All that the tool says while an application runs, is reset, runs again, and is deleted. Checks the effects."""
    said = []

    def say(arguments: Sequence[str]) -> None:
        said.append((" ".join(arguments), run("streams-groups", servers, arguments)))

    def is_left(wanted: set[str]) -> bool:
        return topics(servers) == wanted

    for expected, commands, left in ((ONCE, TO_RESET, {SOURCE, TARGET}), (TWICE, TO_DELETE, {SOURCE, TARGET})):
        with application(servers, folder, "streams", guarantee) as running:
            wait_until_counted(servers, expected)
            running.stop()
        assert topics(servers) == left | INTERNAL
        for arguments in commands:
            say(arguments)
            if arguments[0] == "--reset-offsets" and "--execute" not in arguments:
                assert topics(servers) == left | INTERNAL
        wait_for(partial(is_left, left), "the deletion of internal topics")
    assert committed(servers, GROUP, SOURCE) == {}
    return said


@pytest.fixture(scope="module")
def official_life(
    real_kafka: RunningBroker, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Sequence[tuple[str, Output]]]:
    """What the official tool says on Apache Kafka, for each guarantee."""
    said = {}
    for guarantee in GUARANTEES:
        with_topics(real_kafka.bootstrap_servers)
        said[guarantee] = life(run_official, real_kafka.bootstrap_servers, tmp_path_factory.mktemp("life"), guarantee)
        without_topics(real_kafka.bootstrap_servers)
    return said


@pytest.mark.parametrize("run", [run_ours, run_official])
def test_an_application_is_reset_and_deleted(
    run: Tool,
    scene: str,
    real_kafka: RunningBroker,
    official_life: Mapping[str, Sequence[tuple[str, Output]]],
    guarantee: str,
    tmp_path: Path,
) -> None:
    if run is run_official and scene == real_kafka.bootstrap_servers:
        pytest.skip("this is what the others are compared with")
    said = life(run, scene, tmp_path, guarantee)
    for (arguments, own), (_, official) in zip(said, official_life[guarantee], strict=True):
        assert sorted_lines(own) == sorted_lines(official), arguments


@pytest.mark.parametrize("run", [run_ours, run_official])
def test_an_application_of_the_classic_protocol(run: Tool, scene: str, guarantee: str, tmp_path: Path) -> None:
    """It is a group of consumers, for kafka-consumer-groups; kafka-streams-groups doesn't take it for its own."""
    with application(scene, tmp_path, "classic", guarantee) as running:
        wait_until_counted(scene, ONCE)
        for name, arguments in (
            ("streams-groups", ("--list",)),
            ("streams-groups", ("--describe", "--group", GROUP)),
            ("streams-groups", ("--delete", "--group", GROUP)),
            ("consumer-groups", ("--list", "--state")),
            ("consumer-groups", ("--describe", "--group", GROUP, "--state")),
            ("consumer-groups", ("--describe", "--group", GROUP, "--members", "--verbose")),
        ):
            if run is run_ours:
                official = run_official(name, scene, arguments)
                assert sorted_lines(run(name, scene, arguments)) == sorted_lines(official), arguments
        running.stop()
    admin = AdminClient({"bootstrap.servers": scene})
    for deleting in admin.delete_topics(sorted(INTERNAL)).values():
        deleting.result(20)
    wait_for(lambda: topics(scene) == {SOURCE, TARGET}, "the deletion of internal topics")
    reset = run("consumer-groups", scene, ("--reset-offsets", "--group", GROUP, "--topic", SOURCE, "--to-earliest",
                                           "--execute"))  # fmt: skip
    assert (reset.status, reset.errors) == (0, "")
    with application(scene, tmp_path, "classic", guarantee) as running:
        wait_until_counted(scene, TWICE)
        running.stop()
    assert run("consumer-groups", scene, ("--delete", "--group", GROUP)).status == 0
