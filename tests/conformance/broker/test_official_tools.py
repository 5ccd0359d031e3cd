"""Apache Kafka's own tools, each a Java program, on the broker under test."""

import subprocess
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient
from tests.conformance.brokers import RunningBroker, wait_for
from tests.conformance.clients import CLIENTS, ConsumerOptions, Sent, TopicPartition
from tests.conformance.member import Member
from tools.apache_kafka import run_tool, tool_command

pytestmark = [pytest.mark.conformance, pytest.mark.usefixtures("apache_jars"), pytest.mark.timeout(120)]

Tool = Callable[..., str]
T0 = 1_700_000_000_000


@pytest.fixture
def tool(broker: RunningBroker) -> Tool:
    """Run a tool and take its standard output; its exit status must be `status`."""

    def run(name: str, *args: str, stdin: str | None = None, status: int = 0) -> str:
        done = run_tool(name, "--bootstrap-server", broker.bootstrap_servers, *args, stdin=stdin)
        assert done.returncode == status, f"{done.stdout}\n{done.stderr}"
        return done.stdout + (done.stderr if status else "")

    return run


@pytest.fixture
def filled(broker: RunningBroker, topic: str) -> str:
    """10 records in partition 0 and 5 in partition 1, a second apart."""
    counts = {0: 10, 1: 5}
    records = [Sent(b"%d" % i, partition=p, timestamp_ms=T0 + 1000 * i) for p, n in counts.items() for i in range(n)]
    CLIENTS["confluent"].produce(broker.bootstrap_servers, topic, records)
    return topic


@pytest.fixture
def group(broker: RunningBroker, filled: str) -> str:
    """An empty group that has committed 4 and 5."""
    consumer = CLIENTS["confluent"].consumer(broker.bootstrap_servers, ConsumerOptions(group=filled))
    consumer.assign([TopicPartition(filled, 0)])
    consumer.commit({TopicPartition(filled, 0): 4, TopicPartition(filled, 1): 5})
    consumer.close()
    return filled


@pytest.fixture
def live_group(broker: RunningBroker, filled: str) -> Iterator[str]:
    with Member(CLIENTS["confluent"], broker.bootstrap_servers, ConsumerOptions(group=filled), [filled]) as member:
        wait_for(lambda: len(member.assignment) == 6, "the assignment")
        yield filled
        member.stop()


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip()]


def offsets(admin: AdminClient, broker: RunningBroker, group: str) -> dict[int, int | None]:
    consumer = CLIENTS["confluent"].consumer(broker.bootstrap_servers, ConsumerOptions(group=group))
    found = {p: consumer.committed(TopicPartition(group, p)) for p in (0, 1, 2)}
    consumer.close()
    return found


def test_lists_groups(tool: Tool, group: str) -> None:
    assert [group] in rows(tool("consumer-groups", "--list"))
    assert [group, "Empty"] in rows(tool("consumer-groups", "--list", "--state", "Empty"))
    assert [group] not in rows(tool("consumer-groups", "--list", "--state", "Stable"))
    assert [group, "Classic"] in rows(tool("consumer-groups", "--list", "--type", "classic"))
    assert [group, "Classic", "Empty"] not in rows(tool("groups", "--list", "--consumer"))
    assert [group, "Classic"] in [row[:2] for row in rows(tool("groups", "--list"))]


def test_describes_an_empty_group(tool: Tool, group: str) -> None:
    described = rows(tool("consumer-groups", "--describe", "--group", group))
    assert described[0][:6] == ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    found = [row[:6] for row in described[1:]]
    assert found == [[group, group, "0", "4", "10", "6"], [group, group, "1", "5", "5", "0"]]
    state = rows(tool("consumer-groups", "--describe", "--group", group, "--state"))
    assert (state[-1][0], state[-1][-2:]) == (group, ["Empty", "0"])


def test_describes_members(tool: Tool, live_group: str) -> None:
    members = rows(tool("consumer-groups", "--describe", "--group", live_group, "--members", "--verbose"))
    assert members[-1][0] == live_group
    assert members[-1][2:5] == ["/127.0.0.1", "rdkafka", "6"]
    state = rows(tool("consumer-groups", "--describe", "--group", live_group, "--state"))
    assert state[-1][-3:] == ["range", "Stable", "1"]


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        (["--to-earliest"], {0: 0, 1: 0, 2: 0}),
        (["--to-latest"], {0: 10, 1: 5, 2: 0}),
        (["--shift-by", "-2"], {0: 2, 1: 3}),
        (["--to-offset", "7"], {0: 7, 1: 5, 2: 0}),
        (["--to-datetime", "2023-11-14T22:13:22.500"], {0: 3, 1: 3, 2: 0}),
    ],
    ids=lambda v: v[0] if isinstance(v, list) else None,
)
def test_resets_offsets(
    tool: Tool, admin: AdminClient, broker: RunningBroker, group: str, scenario: list[str], expected: dict[int, int]
) -> None:
    topic = f"{group}:{','.join(map(str, expected))}"
    tool("consumer-groups", "--reset-offsets", "--group", group, "--topic", topic, *scenario, "--dry-run")
    assert offsets(admin, broker, group) == {0: 4, 1: 5, 2: None}
    done = tool("consumer-groups", "--reset-offsets", "--group", group, "--topic", topic, *scenario, "--execute")
    assert [row[2:4] for row in rows(done) if row[0] == group]
    assert offsets(admin, broker, group) == {0: 4, 1: 5, 2: None} | expected


def test_a_live_group_is_not_reset_nor_deleted(tool: Tool, live_group: str) -> None:
    refused = tool("consumer-groups", "--reset-offsets", "--group", live_group, "--all-topics", "--to-earliest",
                   "--execute")  # fmt: skip
    assert "can only be reset if the group" in refused
    refused = tool("consumer-groups", "--delete", "--group", live_group)
    assert "GroupNotEmptyException" in refused
    refused = tool("consumer-groups", "--delete-offsets", "--group", live_group, "--topic", live_group)
    assert "GroupSubscribedToTopicException" in refused


def test_deletes_offsets_and_groups(tool: Tool, admin: AdminClient, broker: RunningBroker, group: str) -> None:
    tool("consumer-groups", "--delete-offsets", "--group", group, "--topic", f"{group}:0")
    assert offsets(admin, broker, group) == {0: None, 1: 5, 2: None}
    assert "was successful" in tool("consumer-groups", "--delete", "--group", group)
    assert [group] not in rows(tool("consumer-groups", "--list"))


def test_topics(tool: Tool, name: str) -> None:
    assert f"Created topic {name}." in tool("topics", "--create", "--topic", name, "--partitions", "3")
    assert [name] in rows(tool("topics", "--list"))
    described = tool("topics", "--describe", "--topic", name)
    assert "PartitionCount: 3" in described
    assert len([line for line in described.splitlines() if "Leader:" in line]) == 3
    tool("topics", "--delete", "--topic", name)
    wait_for(lambda: [name] not in rows(tool("topics", "--list")), "its end")


def test_get_offsets(tool: Tool, filled: str) -> None:
    found = tool("get-offsets", "--topic", filled).splitlines()[:3]
    assert found == [f"{filled}:0:10", f"{filled}:1:5", f"{filled}:2:0"]
    early = tool("get-offsets", "--topic-partitions", f"{filled}:0-2", "--time", "earliest").splitlines()
    assert early == [f"{filled}:0:0", f"{filled}:1:0"]
    assert f"{filled}:0:3" in tool("get-offsets", "--topic", filled, "--time", str(T0 + 2500)).splitlines()
    assert f"{filled}:0:9" in tool("get-offsets", "--topic", filled, "--time", "max-timestamp").splitlines()


def test_console_producer_and_consumer(tool: Tool, topic: str) -> None:
    lines = [f"key{i}:value {i}" for i in range(20)]
    tool("console-producer", "--topic", topic, "--reader-property", "parse.key=true", "--reader-property",
         "key.separator=:", stdin="\n".join(lines) + "\n")  # fmt: skip
    options = ["--topic", topic, "--group", topic, "--from-beginning", "--max-messages", "20", "--timeout-ms", "20000",
               "--formatter-property", "print.key=true", "--formatter-property", "key.separator=:"]  # fmt: skip
    assert sorted(tool("console-consumer", *options).splitlines()) == sorted(lines)
    described = rows(tool("consumer-groups", "--describe", "--group", topic))[1:]
    assert sum(int(row[3]) for row in described if row[3] != "-") == 20
    assert {row[5] for row in described if row[3] != "-"} == {"0"}


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_java_reads_our_compressions_and_we_read_its(
    tool: Tool, broker: RunningBroker, topic: str, compression: str
) -> None:
    tool("console-producer", "--topic", topic, "--compression-codec", compression, stdin="from Java\n" * 50)
    consumer = CLIENTS["confluent"].consumer(broker.bootstrap_servers, ConsumerOptions())
    consumer.assign([TopicPartition(topic, p) for p in range(6)])
    got: list[bytes | None] = []

    def has_all() -> bool:
        got.extend(r.value for r in consumer.poll(0.1))
        return len(got) == 50

    wait_for(has_all, "fifty records")
    consumer.close()
    assert set(got) == {b"from Java"}


def test_a_java_member_shares_with_others(tool: Tool, broker: RunningBroker, admin: AdminClient, topic: str) -> None:
    """Java's consumer (classic protocol) and librdkafka in one group; then Java leaves, as on Ctrl-C."""
    command = tool_command("console-consumer", "--bootstrap-server", broker.bootstrap_servers, "--topic", topic,
                           "--group", topic)  # fmt: skip
    with Member(CLIENTS["confluent"], broker.bootstrap_servers, ConsumerOptions(group=topic), [topic]) as member:
        wait_for(lambda: len(member.assignment) == 6, "all partitions")
        java = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: len(member.assignment) == 3, "half of the partitions", timeout=40)
            found = admin.describe_consumer_groups([topic])[topic].result(20)
            assert sorted(m.client_id for m in found.members) == ["console-consumer", "rdkafka"]
            java.terminate()
            wait_for(lambda: len(member.assignment) == 6, "all partitions again", timeout=40)
        finally:
            java.kill()
            java.communicate()
        member.stop()


def test_configs_of_groups(broker: RunningBroker, tool: Tool, topic: str) -> None:
    entity = ("--entity-type", "groups", "--entity-name", topic)
    given = "consumer.heartbeat.interval.ms=6000,share.auto.offset.reset=earliest"
    assert (
        tool("configs", "--alter", *entity, "--add-config", given) == f"Completed updating config for group {topic}.\n"
    )
    described = rows(tool("configs", "--describe", *entity))
    assert sorted(row[0] for row in described[1:]) == given.split(",")
    assert f"Dynamic configs for group {topic} are:" in tool("configs", "--describe", "--entity-type", "groups")
    refused = tool("configs", "--alter", *entity, "--add-config", "consumer.heartbeat.interval.ms=1", status=1)
    assert "consumer.heartbeat.interval.ms must be in the range" in refused
    tool("configs", "--alter", *entity, "--delete-config", "consumer.heartbeat.interval.ms,share.auto.offset.reset")
    gone = tool("configs", "--describe", *entity)  # GF-02
    assert gone == f"The group '{topic}' doesn't exist and doesn't have dynamic config.\n"
