"""kafka-consumer-groups on the embedded broker, requirement by requirement, where a recording would say less.

That the whole output is the official tool's is shown in test_against_recorded.
"""

import asyncio
from collections.abc import Callable, Iterator

import pytest
from tests.acts import committed
from tests.cli.stages import ACTIVE, INACTIVE, PATIENCE_S, Live, Stage, connect, put_back

from groupkeeper import SyncAdmin
from groupkeeper.cli.dropin import kafka_consumer_groups
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import MemberToRemove, OffsetAndMetadata, TopicPartition
from groupkeeper.protocol import messages as m

STAGE = Stage(
    "drop-ins",
    {**INACTIVE.records, "many": (0,) * 11},
    INACTIVE.starts,
    {**INACTIVE.commits, **ACTIVE.commits, "wide": {("many", n): OffsetAndMetadata(0) for n in range(11)}},
    [Live("app", "client-of-app", ["orders"], {"orders": [0, 1]})],
)
UNKNOWN_TOPIC = "This server does not host this topic-partition."

Run = Callable[..., tuple[int, list[str], list[str]]]


@pytest.fixture
def run(servers: str, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Runs the command: its status, the lines of standard output, those of standard error."""

    def call(words: str) -> tuple[int, list[str], list[str]]:
        status = kafka_consumer_groups.main(["--bootstrap-server", servers, *words.split()])
        output, errors = capsys.readouterr()
        return status, output.splitlines(), errors.splitlines()

    yield call
    asyncio.run(put_back(STAGE, servers))


async def join_of_another_protocol(servers: str, group_id: str) -> str:
    """A worker of Kafka Connect joins, and the group then has its protocol type; the member's id."""
    async with Admin(servers) as admin:
        (await admin.find_coordinators([group_id])).all()
    connection = await connect(servers, "worker")
    member_id = ""
    for _ in range(2):
        protocol = m.JoinGroupRequestProtocol("compatible", b"")
        request = m.JoinGroupRequest(group_id, 300_000, 300_000, member_id, None, "connect", [protocol])
        answer = await connection.ask(request, 9, m.JoinGroupResponse, PATIENCE_S)
        member_id = answer.member_id
    assert answer.error_code == 0
    connection.abort()
    return member_id


def remove(servers: str, group_id: str, member_id: str) -> None:
    with SyncAdmin(servers) as admin:
        admin.remove_members(group_id, [MemberToRemove(member_id=member_id)]).all()


# K88-50, K88-51: the warning goes to standard error, behind an empty line
def test_an_empty_group_is_described_by_its_offsets(run: Run) -> None:
    status, output, errors = run("--describe --group billing")
    assert (status, errors) == (0, ["", "Consumer group 'billing' has no active members."])
    rows = [line.split() for line in output if line.startswith("billing")]
    assert [row[1:3] for row in rows] == [["orders", "0"], ["orders", "1"], ["payments", "1"]]
    assert all(row[-3:] == ["-", "-", "-"] for row in rows)


# K88-52
def test_what_nobody_is_assigned_comes_last(run: Run) -> None:
    rows = [line.split() for line in run("--describe --group app")[1] if line.startswith("app")]
    assert [(row[2], row[-1]) for row in rows] == [("0", "client-of-app"), ("1", "client-of-app"), ("2", "-")]


# K496-53, K496-55: in the order of the text of topic and partition
def test_deleted_offsets_are_listed_as_texts_are_ordered(run: Run, servers: str) -> None:
    status, output, _ = run("--delete-offsets --group wide --topic many")
    assert (status, output[0]) == (0, "Request succeeded for deleting offsets from group wide.")
    rows = [line.split() for line in output if line.startswith("many")]
    assert [row[1] for row in rows] == ["0", "1", "10", "2", "3", "4", "5", "6", "7", "8", "9"]
    assert {row[2] for row in rows} == {"Successful"}
    assert committed(servers, "wide") == {}


# K496-56, K496-58: a topic that cannot be described isn't part of the request
def test_a_topic_that_there_is_not_keeps_nothing_from_being_deleted(run: Run, servers: str) -> None:
    status, output, _ = run("--delete-offsets --group billing --topic orders:0 --topic nowhere")
    assert (status, output[0]) == (0, "Request succeeded for deleting offsets from group billing.")
    rows = {tuple(line.split()[:2]): line for line in output if line.startswith(("orders", "nowhere"))}
    assert set(rows) == {("orders", "0"), ("nowhere", "-")}
    assert rows["nowhere", "-"].endswith(UNKNOWN_TOPIC)
    assert "Error: " in rows["nowhere", "-"]
    assert TopicPartition("orders", 0) not in committed(servers, "billing")


# K496-54, K496-57: the table is there when the whole group is refused, too
def test_an_error_of_the_group_is_every_partitions(run: Run) -> None:
    status, output, _ = run("--delete-offsets --group nope --topic orders:0,2 --topic payments:1")
    assert (status, output[:2]) == (0, ["", "Error: The group id does not exist."])
    rows = [line.split(maxsplit=2) for line in output if line.startswith(("orders", "payments"))]
    assert [row[:2] for row in rows] == [["orders", "0"], ["orders", "2"], ["payments", "1"]]
    assert {row[2].rpartition(": ")[2] for row in rows} == {"The group id does not exist."}


# K496-54, K496-59: a partition's error has its class in front
def test_an_error_of_a_partition_is_in_its_row(run: Run) -> None:
    status, output, _ = run("--delete-offsets --group app --topic orders:0")
    assert status == 0
    assert output[1] == "Error: Encountered some partition-level error, see the follow-up details."
    [row] = [line for line in output if line.startswith("orders")]
    assert "Error: org.apache.kafka.common.errors.GroupSubscribedToTopicException: " in row


# K518-40, K518-46
def test_groups_of_other_protocols_are_not_listed(run: Run, servers: str) -> None:
    member_id = asyncio.run(join_of_another_protocol(servers, "connect-sink"))
    status, output, errors = run("--list")
    assert (status, sorted(output), errors) == (0, ["app", "billing", "wide", "zeta"], [])
    # K122-87 in the classic protocol: it cannot be described as a group of consumers
    assert "is not a consumer group (connect)." in run("--describe --group connect-sink")[1][1]
    remove(servers, "connect-sink", member_id)


# K122-73
def test_a_group_with_members_keeps_no_other_from_its_reset(run: Run) -> None:
    status, output, _ = run("--reset-offsets --group app --group billing --topic payments --to-earliest --dry-run")
    why = "Assignments can only be reset if the group 'app' is inactive, but the current state is Stable."
    assert (status, f"Error: {why}" in "\n".join(output)) == (0, True)
    found = [line.split() for line in output if line.startswith("billing")]
    assert found == [["billing", "payments", "0", "0"], ["billing", "payments", "1", "0"]]


# K122-X8
def test_a_topic_that_the_group_does_not_consume_is_reset_all_the_same(run: Run, servers: str) -> None:
    many = TopicPartition("many", 3)
    assert many not in committed(servers, "billing")
    assert run("--reset-offsets --group billing --topic many:3 --to-latest --execute")[0] == 0
    assert many in committed(servers, "billing")


# K122-75
def test_partitions_that_there_are_not_are_named(run: Run) -> None:
    status, output, _ = run("--reset-offsets --group billing --topic orders:7,8 --to-earliest --dry-run")
    assert (status, 'The partitions "orders-7,orders-8" do not exist' in "\n".join(output)) == (0, True)


# K122-83, K122-84
@pytest.mark.parametrize("view", ["", "--members", "--state", "--offsets --verbose"])
def test_describing_a_group_that_there_is_not(run: Run, view: str) -> None:
    status, output, _ = run(f"--describe --group nope {view}")
    assert (status, output[0]) == (0, "")
    assert output[1].startswith("Error: Executing consumer group command failed due to ")
    assert output[1].endswith("Group nope not found.")


# K122-85
def test_deleting_some_groups_says_which(run: Run) -> None:
    status, output, _ = run("--delete --group zeta --group nope --group app")
    assert (status, output[:2]) == (0, ["", "Error: Deletion of some consumer groups failed:"])
    refusals = [line for line in output if line.startswith("* ")]  # in the order of the official tool's hash table
    assert [line.split(" could not")[0] for line in refusals] == ["* Group 'app'", "* Group 'nope'"]
    assert output[-1] == "These consumer groups were deleted successfully: 'zeta'"
