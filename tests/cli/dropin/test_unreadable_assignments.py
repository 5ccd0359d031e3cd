"""A member whose assignment cannot be read: the official tool fails as a whole, with Java's words."""

import pytest
from tests.differential.wire import Pool

from groupkeeper.cli.dropin.kafka_consumer_groups import main
from groupkeeper.protocol import messages as m
from groupkeeper.testing.background import BackgroundBroker

SAID = "org.apache.kafka.common.protocol.types.SchemaException: Unsupported assignment version: -8531\n"


def test_the_tool_says_what_java_says(groupkeeper_broker: BackgroundBroker, capsys: pytest.CaptureFixture[str]) -> None:
    pool = Pool(groupkeeper_broker.bootstrap_servers)
    pool.ask(m.FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    protocol = m.JoinGroupRequestProtocol("range", b"\0\0\0\0\0\1\0\6orders\xff\xff\xff\xff")
    joined = pool.ask(m.JoinGroupRequest("g", 300_000, 300_000, "", "a", "consumer", [protocol]), 9)
    assert isinstance(joined, m.JoinGroupResponse)
    assigned = [m.SyncGroupRequestAssignment(joined.member_id, b"\xde\xad\xbe")]
    request = m.SyncGroupRequest("g", joined.generation_id, joined.member_id, "a", "consumer", "range", assigned)
    pool.ask(request, 5)
    failed = "\nError: Executing consumer group command failed due to "
    for words, said in (
        (["--describe", "--members"], SAID),
        (["--describe", "--state"], SAID),
        (["--describe"], SAID),
        (["--reset-offsets", "--all-topics", "--to-earliest"], f"java.util.concurrent.ExecutionException: {SAID}"),
    ):
        assert main([*words, "--group", "g", "--bootstrap-server", groupkeeper_broker.bootstrap_servers]) == 0
        assert capsys.readouterr().out == failed + said
    pool.close()
