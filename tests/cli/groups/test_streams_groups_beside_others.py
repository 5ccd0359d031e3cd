"""`groupkeeper groups …` beside a streams group: it is listed, its offsets are shown, and nothing else breaks."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.cli.groups.test_groups_watch import end, until, watching
from tests.differential.wire import Pool

from groupkeeper.cli.dropin import kafka_streams_groups
from groupkeeper.cli.groups.topology import node_rows
from groupkeeper.client.admin.streams_types import StreamsNode, StreamsTopology
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator
from groupkeeper.protocol.messages import offset_commit_request
from groupkeeper.protocol.messages.streams_group_heartbeat_request import Subtopology, Topology
from groupkeeper.testing.background import BackgroundBroker

LEAVES = -1
NOT_YET = (CoordinatorNotAvailable.code, NotCoordinator.code, CoordinatorLoadInProgress.code)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with BackgroundBroker(properties={"group.streams.initial.rebalance.delay.ms": "0"}) as broker:
        pool = Pool(broker.bootstrap_servers)
        pool.ask(m.CreateTopicsRequest([m.CreatableTopic("t", 1, 1)], 10_000), 7)
        commit(pool, "plain", "", -1)
        commit(pool, "app", "m", beat(pool, "app", ["t"]))
        yield broker.bootstrap_servers
        pool.close()


def beat(pool: Pool, group_id: str, topics: Sequence[str]) -> int:
    """Join as `m`; the epoch."""
    joining = m.StreamsGroupHeartbeatRequest(
        group_id, "m", 0, rebalance_timeout_ms=1000, topology=Topology(0, [Subtopology("0", topics)]), process_id="p",
        active_tasks=[], standby_tasks=[], warmup_tasks=[],
    )  # fmt: skip
    return pool.ask(joining, 0).member_epoch


def commit(pool: Pool, group_id: str, member_id: str, epoch: int) -> None:
    module = offset_commit_request
    pool.ask(m.FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id]), 6)
    topics = [module.OffsetCommitRequestTopic("t", partitions=[module.OffsetCommitRequestPartition(0, 5)])]
    code = NOT_YET[0]
    while code in NOT_YET:
        answer = pool.ask(module.OffsetCommitRequest(group_id, epoch, member_id, topics=topics), 9)
        code = answer.topics[0].partitions[0].error_code
    assert code == 0


@pytest.fixture
def waiting(servers: str) -> Iterator[str]:
    """A group whose topic does not exist, gone at the end."""
    pool = Pool(servers)
    pool.ask(m.FindCoordinatorRequest(key_type=0, coordinator_keys=["waiting"]), 6)
    beat(pool, "waiting", ["not-made-yet"])
    yield "waiting"
    pool.ask(m.StreamsGroupHeartbeatRequest("waiting", "m", LEAVES), 0)
    pool.ask(m.DeleteGroupsRequest(["waiting"]), 2)
    pool.close()


def test_it_is_listed(run: Any) -> None:
    status, report = run("groups", "list")
    assert status == 0
    found = [(row["group"], row["type"], row["state"]) for row in report["groups"]]
    assert found == [("app", "Streams", "Stable"), ("plain", "Classic", "Empty")]


def test_the_list_is_narrowed_to_it(run: Any) -> None:
    for words in (["--type", "streams"], ["--state", "stable,notready"]):
        status, report = run("groups", "list", *words)
        assert (status, [row["group"] for row in report["groups"]]) == (0, ["app"])


def test_groups_that_are_not_ready_are_found_by_that_state(run: Any, waiting: str) -> None:
    status, report = run("groups", "list", "--state", "NotReady")
    assert (status, [row["group"] for row in report["groups"]]) == (0, [waiting])


def test_the_official_name_of_that_state_finds_none(
    servers: str, waiting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--bootstrap-server", servers, "--list"]
    assert kafka_streams_groups.main(command) == 0
    assert capsys.readouterr() == (f"app\n{waiting}\n", "")
    assert kafka_streams_groups.main([*command, "--state", "notready"]) == 0
    assert capsys.readouterr() == ("GROUP           STATE\n", "")


def test_a_task_that_reads_topics_of_unequal_sizes(servers: str, capsys: pytest.CaptureFixture[str]) -> None:
    pool = Pool(servers)
    pool.ask(m.CreateTopicsRequest([m.CreatableTopic("u", 2, 1)], 10_000), 7)
    pool.ask(m.FindCoordinatorRequest(key_type=0, coordinator_keys=["unequal"]), 6)
    beat(pool, "unequal", ["t", "u"])
    assert kafka_streams_groups.main(["--bootstrap-server", servers, "--describe", "--group", "unequal"]) == 1
    said = capsys.readouterr().out
    pool.ask(m.StreamsGroupHeartbeatRequest("unequal", "m", LEAVES), 0)
    pool.ask(m.DeleteGroupsRequest(["unequal"]), 2)
    pool.close()
    assert said.endswith("UnknownTopicOrPartitionException: Partition t-1 does not exist\n")


def test_its_offsets_are_shown(run: Any) -> None:
    status, report = run("groups", "offsets", "app", "plain")
    assert status == 0
    found = [(row["group"], row["topic"], row["committed_offset"]) for row in report["offsets"]]
    assert found == [("app", "t", 5), ("plain", "t", 5)]


@pytest.mark.parametrize("view", ["offsets", "members", "state"])
def test_the_views_of_all_groups_have_it(run: Any, view: str) -> None:
    status, report = run("groups", "describe", "--all-groups", "--view", view)
    assert status == 0
    assert "app" in json.dumps(report)
    assert run("groups", "describe", "--all-groups", "--type", "streams", "--view", view)[0] == 0
    assert "app" not in json.dumps(run("groups", "describe", "--all-groups", "--type", "classic", "--view", view)[1])


def test_its_state(run: Any) -> None:
    status, report = run("groups", "describe", "app", "nobody", "--view", "state")
    [row] = report["groups"]
    assert (status, [one["group"] for one in report["problems"]]) == (1, ["nobody"])
    assert (row["type"], row["state"], row["members"], row["assignor"]) == ("Streams", "Stable", 1, "sticky")
    assert row["group_epoch"] == row["target_epoch"] > 0


def test_its_topology_is_not_kept(run: Any) -> None:
    for words in (["app"], ["--all-groups"]):
        status, report = run("groups", "describe", *words, "--view", "topology")
        assert (status, report["nodes"], report["problems"]) == (0, [], [])
        assert "no topology of group app is kept: brokers need a plugin for that" in report["notes"]
    [problem] = run("groups", "describe", "plain", "--view", "topology")[1]["problems"]
    assert (problem["group"], problem["error"]) == ("plain", "GROUP_ID_NOT_FOUND")


def test_the_nodes_of_a_topology() -> None:
    source = StreamsNode("in", "source", ("b", "a"), (), ("count",))
    count = StreamsNode("count", "processor", (), ("store",))
    rows = list(node_rows("app", StreamsTopology((("0", (source,)),), ((source, count),))))
    found = [(row["subtopology"], row["node"], row["kind"]) for row in rows]
    assert found == [("0", "in", "source"), (None, "in", "source"), (None, "count", "processor")]
    assert (rows[0]["topics"], rows[0]["stores"], rows[0]["successors"]) == ("a, b", None, "count")
    assert rows[2]["stores"] == "store"


def test_its_members_with_what_their_tasks_read(run: Any) -> None:
    status, report = run("groups", "members", "app")
    [row] = report["members"]
    assert (status, row["member_id"], row["partitions"], row["upgraded"]) == (0, "m", 1, None)
    assert row["assignment"] == row["target_assignment"] == [{"topic": "t", "partition": 0}]
    [row] = run("groups", "describe", "app")[1]["offsets"]
    assert (row["member_id"], row["client_id"], row["lag"]) == ("m", "client", 0)


def test_a_refusal_names_the_tool_for_its_type(run: Any) -> None:
    status, report = run("groups", "delete", "app", "--execute")
    [problem] = report["problems"]
    assert (status, report["deleted"], problem["error"]) == (1, [], "NOT_OF_CONSUMERS")
    assert problem["message"] == "a streams group is deleted by kafka-streams-groups (--delete)"


@pytest.mark.parametrize("words", [["app"], ["--all-groups"]])
def test_it_is_followed(servers: str, words: list[str]) -> None:
    with watching(servers, *words, "--output", "json") as process:
        place = {"topic": "t", "partition": 0}
        until(process, ("type", None, None, "Streams"), ("member_present", "m", None, [place]))
        end(process)


def test_a_plan_names_its_type_and_waits_for_its_members(run: Any, servers: str, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    status, report = run("plan", "delete-offsets", "app", "--topic", "t", "--save", path)
    assert (status, [(row["before"], row["state"]) for row in report["changes"]]) == (0, [(5, "Stable")])
    # Who its members are and what they read is not known: nothing is deleted beside them.
    status, report = run("apply", path, "--execute")
    assert (status, [(one["error"], one["group"]) for one in report["problems"]]) == (1, [("GROUP_IS_ACTIVE", "app")])
    assert "Stable" in report["problems"][0]["message"]
    pool = Pool(servers)
    pool.ask(m.FindCoordinatorRequest(key_type=0, coordinator_keys=["app"]), 6)
    assert pool.ask(m.StreamsGroupHeartbeatRequest("app", "m", LEAVES), 0).error_code == 0
    pool.close()
    status, report = run("plan", "reset", "app", "--topic", "t", "--to-earliest", "--save", path)
    assert (status, [(row["after"], row["state"]) for row in report["changes"]]) == (0, [(0, "Empty")])
    assert report["notes"][0].startswith("app is a streams group: its offsets are set, but its state stores")
    assert [row["result"] for row in run("apply", path, "--execute")[1]["changes"]] == ["applied"]
    # What was committed is beyond the end of the log.
    assert [row["after"] for row in run("undo", "--execute", "--if-out-of-range", "clamp")[1]["changes"]] == [0]
