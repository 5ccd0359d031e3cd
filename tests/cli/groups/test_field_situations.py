"""Situations from public reports about tools of other people that went well here."""

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.differential.wire import Pool

from groupkeeper.cli.dropin.kafka_consumer_groups import main as official
from groupkeeper.cli.main import main
from groupkeeper.protocol import messages as m
from groupkeeper.testing.background import BackgroundBroker

GREATEST = 2**63 - 1
OTHERS = {
    "schema-registry": ("sr", b'{"host":"sr","port":8081}', b'{"error":0}'),
    "connect-cluster": ("connect", b"\0\2\0\0", b"\0\2" + bytes(8)),
    "my-own": ("consumer-like", b"\1\2", b"\1\2"),
}
"""Groups of other protocols than consumers: type, metadata and assignment of their member."""

Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def servers(groupkeeper_broker: BackgroundBroker) -> str:
    return groupkeeper_broker.bootstrap_servers


@pytest.fixture
def pool(servers: str) -> Iterator[Pool]:
    pool = Pool(servers)
    pool.ask(m.CreateTopicsRequest([m.CreatableTopic("orders", 2, 1)]), 7)
    yield pool
    pool.close()


def commit(pool: Pool, group_id: str, *offsets: int) -> None:
    pool.ask(m.FindCoordinatorRequest(coordinator_keys=[group_id]), 4)
    partitions = [m.OffsetCommitRequestPartition(number, offset) for number, offset in enumerate(offsets)]
    request = m.OffsetCommitRequest(group_id, topics=[m.OffsetCommitRequestTopic("orders", partitions=partitions)])
    answer = pool.ask(request, 8)
    assert {one.error_code for topic in answer.topics for one in topic.partitions} == {0}


def join(pool: Pool, group_id: str, kind: str, metadata: bytes, assignment: bytes) -> None:
    pool.ask(m.FindCoordinatorRequest(coordinator_keys=[group_id]), 4)
    protocol = m.JoinGroupRequestProtocol("v0", metadata)
    joined = pool.ask(m.JoinGroupRequest(group_id, 300_000, 300_000, "", "a", kind, [protocol]), 9)
    given = [m.SyncGroupRequestAssignment(joined.member_id, assignment)]
    pool.ask(m.SyncGroupRequest(group_id, joined.generation_id, joined.member_id, "a", kind, "v0", given), 5)


def test_groups_of_other_protocols_are_left_alone(
    run: Run, pool: Pool, servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(pool, "billing", 0, 0)
    for group_id, (kind, metadata, assignment) in OTHERS.items():
        join(pool, group_id, kind, metadata, assignment)
    status, report = run("groups", "offsets", "--all-groups")
    assert (status, report["problems"]) == (0, [])
    assert [(row["group"], row["committed_offset"]) for row in report["offsets"]] == [("billing", 0)] * 2
    assert run("check", "--all-groups", "--max-time-lag", "1h")[0] == 0
    for group_id, (kind, *_) in OTHERS.items():
        for view in ("offsets", "members", "state"):
            status, report = run("groups", "describe", group_id, "--view", view)
            assert (status, [one["group"] for one in report["problems"]]) == (1, [group_id])
        assert run("groups", "delete", group_id, "--execute")[0] == 1
        words = ["--describe", "--group", group_id, "--bootstrap-server", servers]
        assert official(words) == 0
        assert f"GroupId {group_id} is not a consumer group ({kind})" in capsys.readouterr().out


def test_a_cluster_without_any_group(run: Run) -> None:
    for words in (
        ["groups", "list"],
        ["groups", "offsets", "--all-groups"],
        ["check", "--all-groups", "--max-lag", "1"],
    ):
        status, report = run(*words)
        assert (status, report["problems"]) == (0, []), words
    status, report = run("groups", "offsets", "nowhere")
    assert (status, report["problems"][0]["error"]) == (1, "GROUP_ID_NOT_FOUND")


def test_commits_that_no_log_has_hide_nothing(run: Run, pool: Pool) -> None:
    commit(pool, "odd", -5, GREATEST)
    commit(pool, "sound", 0, 0)
    status, report = run("groups", "offsets", "--all-groups")
    assert {row["group"] for row in report["offsets"]} == {"odd", "sound"}
    rows = {row["partition"]: row for row in report["offsets"] if row["group"] == "odd"}
    assert (rows[1]["committed_offset"], rows[1]["status"], rows[1]["lag"]) == (GREATEST, "beyond_log_end", 0)
    for shift in (GREATEST, -GREATEST - 1):
        words = ("groups", "reset", "odd", "--topic", "orders:1", f"--shift-by={shift}", "--execute")
        status, report = run(*words)
        assert (status, report["offsets"][0]["new_offset"]) == (0, 0)


@pytest.mark.parametrize(
    "greeting", [b"SSH-2.0-OpenSSH_9.2\r\n", b"220 mail.example ESMTP\r\n", b"\x7f\xff\xff\xff", b"\0" * 4]
)
def test_a_port_of_something_else_is_named_in_one_line(greeting: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            try:
                while True:
                    with server.accept()[0] as connection:
                        connection.sendall(greeting)
                        connection.recv(100)
            except OSError:
                return

        greeting_all = threading.Thread(target=greet)
        greeting_all.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        try:
            assert main(["groups", "list", "--bootstrap-server", address, "--timeout", "20s"]) == 1
        finally:
            server.shutdown(socket.SHUT_RDWR)
            greeting_all.join()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert address in line
    assert line.endswith(("(UNEXPECTED_RESPONSE)", "(RESPONSE_TOO_LARGE)"))


def test_names_with_commas_and_quotes_come_back_from_a_file(
    pool: Pool, servers: str, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    names = ["a,b", 'quo"te', " blank ", "東京"]
    words = ["--bootstrap-server", servers, "--reset-offsets"]
    for name in names:
        commit(pool, name, 0, 0)
        words += ["--group", name]
    assert official([*words, "--all-topics", "--to-current", "--export", "--dry-run"]) == 0
    exported = capsys.readouterr().out
    path = tmp_path / "plan.csv"
    path.write_text(exported)
    assert official([*words, "--from-file", str(path), "--export", "--dry-run"]) == 0
    assert sorted(capsys.readouterr().out.split()) == sorted(exported.split())
    assert all(name.replace('"', '""') in exported for name in names)
