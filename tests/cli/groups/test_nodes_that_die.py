"""What commands show of a group while a node of the cluster is down: what can be reached, and reasons for the rest."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from tests.acts import commit, produce
from tests.web.serving import serving

from groupkeeper.cli.main import main
from groupkeeper.testing.background import BackgroundBroker

SETTINGS = {"offsets.topic.num.partitions": "2", "offsets.topic.replication.factor": "2", "num.partitions": "2"}


@pytest.fixture
def cluster() -> Iterator[BackgroundBroker]:
    """Two nodes; each leads a partition of `orders`, for which there are no other replicas, and a group has read one
    of two records in each.
    """
    with BackgroundBroker(properties=SETTINGS, brokers=2) as broker:
        servers = broker.bootstrap_servers
        AdminClient({"bootstrap.servers": servers}).list_topics("orders", 20)  # makes it
        produce(servers, "orders", "xxxx", (0, 1))
        commit(servers, "billing", {("orders", index): 1 for index in range(2)})
        yield broker


def leader_of(cluster: BackgroundBroker, node: int) -> int:
    """The partition that a node leads."""
    parts = AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics("orders", 20).topics["orders"]
    (found,) = (index for index, part in parts.partitions.items() if part.leader == node)
    return found


def shown(servers: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[int, dict[str, Any]]]:
    status = main(["groups", "offsets", "billing", "--bootstrap-server", servers, "--output", "json"])
    rows = json.loads(capsys.readouterr().out)["offsets"]
    return status, {row["partition"]: row for row in rows}


@pytest.mark.parametrize("down", [1, 2])
def test_offsets_of_what_can_be_reached(
    cluster: BackgroundBroker, capsys: pytest.CaptureFixture[str], down: int
) -> None:
    status, rows = shown(cluster.bootstrap_servers, capsys)
    assert (status, [rows[index]["lag"] for index in range(2)]) == (0, [1, 1])
    gone = leader_of(cluster, down)
    cluster.kill_node(down)
    status, rows = shown(cluster.bootstrap_servers, capsys)
    assert rows[1 - gone]["lag"] == 1
    assert [rows[gone][name] for name in ("committed_offset", "lag", "status")] == [1, None, "no_leader"]
    cluster.start_node(down)
    status, rows = shown(cluster.bootstrap_servers, capsys)
    assert (status, [rows[index]["lag"] for index in range(2)]) == (0, [1, 1])


@pytest.mark.parametrize(("way", "why"), [("hide_node", "connection refused"), ("pause_node", "not connected yet")])
def test_a_node_that_leads_and_is_out_of_reach_is_named_once(
    cluster: BackgroundBroker, capsys: pytest.CaptureFixture[str], way: str, why: str
) -> None:
    gone = leader_of(cluster, 2)
    cluster.move_coordinator("billing", 1)
    getattr(cluster, way)(2)
    where = ["--bootstrap-server", cluster.bootstrap_servers]
    hasty = [*where, "--timeout", "2000ms"]
    assert main(["groups", "list", *hasty]) == 1
    output, errors = capsys.readouterr()
    assert "billing" in output
    (line,) = errors.splitlines()
    assert line.startswith("error: broker 2: listGroups timed out after 2000 ms (last: 127.0.0.1:")
    assert (line.count("timed out"), line.count(why)) == (1, 1)
    assert main(["groups", "offsets", "billing", *hasty]) == 1
    output, errors = capsys.readouterr()
    lags = {line.split()[2]: line.split()[5] for line in output.splitlines() if line.startswith("billing")}
    assert lags == {str(gone): "-", str(1 - gone): "1"}
    assert f"error: orders-{gone}: listOffsets timed out after 2000 ms" in errors
    cluster.resume_node(2)
    assert main(["groups", "list", *where]) == 0


@pytest.mark.parametrize(("way", "error"), [("kill_node", "LEADER_NOT_AVAILABLE"), ("hide_node", "CALL_TIMED_OUT")])
def test_serve_shows_what_can_be_reached_and_names_the_rest(cluster: BackgroundBroker, way: str, error: str) -> None:
    cluster.move_coordinator("billing", 1)
    lag = 'groupkeeper_group_lag{cluster="default",group="billing",topic="orders"} '
    problem = re.compile(f'groupkeeper_(cluster|group)_problem{{.*error="{error}".*}} 1\n')
    with serving("--bootstrap-server", cluster.bootstrap_servers, "--interval", "100ms", "--timeout", "1s") as served:
        served.until(lambda text: f"{lag}2\n" in text)
        getattr(cluster, way)(2)
        served.until(lambda text: f"{lag}1\n" in text and problem.search(text) is not None)
        assert "billing" in served.get("/api/v1/groups?cluster=default").text
        (cluster.start_node if way == "kill_node" else cluster.resume_node)(2)
        served.until(lambda text: f"{lag}2\n" in text and problem.search(text) is None)
