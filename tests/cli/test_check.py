"""`groupkeeper check`: rows, and the exit status that cron and CI go by."""

import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from tests.acts import commit, make_topic
from tests.live.stage import arrange
from tests.times_and_transactions import producer_of, send, wait_until_it_ends_at

from groupkeeper.broker.authorizer import Operation, ResourceType, RuleAuthorizer
from groupkeeper.cli.main import main
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.testing.background import BackgroundBroker


@pytest.fixture(scope="module")
def servers(authorizer: RuleAuthorizer) -> Iterator[str]:
    with BackgroundBroker(authorizer=authorizer, properties={"group.initial.rebalance.delay.ms": "0"}) as broker:
        arrange(broker.bootstrap_servers)
        yield broker.bootstrap_servers


@pytest.fixture
def check(servers: str, groupkeeper: Any) -> Any:
    return lambda *words: groupkeeper("check", *words, "--bootstrap-server", servers)


def verdicts(report: Any) -> list[tuple[str, str, str, object, object]]:
    return [tuple(row[name] for name in ("group", "measure", "verdict", "value", "limit")) for row in report["checks"]]


def test_limits_that_are_kept(check: Any) -> None:
    status, report = check("--max-lag", "8", "--max-time-lag", "10h", "--min-retention-margin", "30m")
    assert (status, report["checks"], report["problems"]) == (0, [], [])
    assert report["notes"] == ["3 of 3 groups are within their limits"]
    assert report["schema"] == "check/1"


def test_limits_that_are_broken(check: Any) -> None:
    status, report = check(
        "--max-lag", "7", "--max-time-lag", "8h", "--min-retention-margin", "2h", "--state", "Stable"
    )
    assert status == 3
    measured = {(row["group"], row["measure"]): row for row in report["checks"]}
    found = {key for key in measured if key[1] != "state"}
    assert found == {("search", "lag"), ("search", "time_lag"), ("search", "retention_margin")}
    assert len(measured) == 6  # and the state of all three
    lag, time_lag = measured["search", "lag"], measured["search", "time_lag"]
    assert (lag["verdict"], lag["value"], lag["limit"]) == ("broken", 8, 7)
    assert 9 * 3600 <= time_lag["value"] < 10 * 3600  # the cluster is made once for all tests
    assert time_lag["limit"] == 8 * 3600


def test_what_a_table_says(servers: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("check", "--bootstrap-server", servers, "--max-time-lag", "10m", "--max-lag", "3", "billing")
    assert main([*words]) == 3
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert said[0] == ["GROUP", "MEASURE", "VERDICT", "VALUE", "LIMIT", "WHY", "TOPIC", "PARTITION"]
    assert said[1] == ["billing", "lag", "broken", "5", "3", "-", "orders", "0"]
    assert said[2][:3] + said[2][-5:] == ["billing", "time_lag", "broken", "10", "min", "-", "orders", "0"]
    assert said[2][4] == "h"
    assert main([*words, "--output", "csv"]) == 3
    assert ",600,,default,orders,0" in capsys.readouterr().out


def test_quiet_says_what_is_wrong_only(servers: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("check", "--bootstrap-server", servers, "--quiet", "--max-lag")
    assert main([*words, "8"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main([*words, "7"]) == 3
    assert "search" in capsys.readouterr().out
    assert main([*words, "8", "nowhere"]) == 1
    out, err = capsys.readouterr()
    assert (out, "nowhere" in err) == ("", True)


def test_aborted_records_of_a_moment_ago_do_not_wait(groupkeeper: Any) -> None:
    with BackgroundBroker() as broker:
        servers = broker.bootstrap_servers
        make_topic(servers, "t")
        producer = producer_of(servers, **{"transactional.id": "x"})
        producer.init_transactions(30)
        producer.begin_transaction()
        send(producer, "t", [time.time_ns() // 1_000_000 - 10_000])
        producer.abort_transaction(30)
        wait_until_it_ends_at(servers, "t", 2)
        commit(servers, "g", {TopicPartition("t", 0): 0})
        status, report = groupkeeper("check", "g", "--max-time-lag", "1s", "--show-ok", "--bootstrap-server", servers)
        [row] = report["checks"]
        assert (status, row["verdict"], row["value"]) == (0, "ok", 0)


def test_only_the_groups_that_are_named(check: Any) -> None:
    assert check("audit", "b*", "--max-lag", "5")[0] == 0
    status, report = check("search", "--max-lag", "5", "--show-ok", "--max-lost", "0")
    assert (status, verdicts(report)) == (3, [("search", "lag", "broken", 8, 5), ("search", "lost", "ok", 0, 0)])
    status, report = check("nowhere", "no-*", "--max-lag", "5")
    assert (status, [problem["error"] for problem in report["problems"]]) == (1, ["GROUP_ID_NOT_FOUND"])
    assert "no group matches no-*" in report["notes"]


def test_what_cannot_be_asked_is_not_well(check: Any, authorizer: RuleAuthorizer) -> None:
    before = authorizer.rules
    authorizer.allow(Operation.DESCRIBE, ResourceType.TOPIC, "orders")  # and nothing more: records may not be read
    try:
        assert check("--max-lag", "8")[0] == 0
        status, report = check("--max-time-lag", "10h")
        assert status == 1
        found = {(row["group"], row["verdict"]) for row in report["checks"]}
        assert found == {("billing", "unknown"), ("search", "unknown")}
        assert {row["why"] for row in report["checks"]} == {"missing ACL: READ on topic orders"}
        assert report["problems"][0]["acl"] == {"operation": "READ", "resource_type": "TOPIC", "name": "orders"}
        assert check("--max-time-lag", "10h", "--max-lag", "7")[0] == 3  # what is broken is broken
    finally:
        authorizer.rules = before


def test_topics_that_may_be_hidden_are_noted(check: Any, authorizer: RuleAuthorizer) -> None:
    before = authorizer.rules
    for names in ("payments", "no-*"):
        authorizer.deny(Operation.DESCRIBE, ResourceType.TOPIC, names)
    try:
        status, report = check("--max-lag", "8")
    finally:
        authorizer.rules = before
    assert status == 0
    assert report["notes"][0].startswith("only offsets of topics that you may describe are known")


def test_rebalances_are_followed(check: Any, servers: str) -> None:
    has_begun, is_over = threading.Event(), threading.Event()

    def come_and_go() -> None:
        while not is_over.is_set():
            consumer = Consumer({"bootstrap.servers": servers, "group.id": "restless", "session.timeout.ms": 6000})
            consumer.subscribe(["orders"])
            for _ in range(100):
                consumer.poll(0.02)
                if consumer.assignment():
                    break
            has_begun.set()
            is_over.wait(0.3)
            consumer.close()
            is_over.wait(0.3)

    commit(servers, "restless", {TopicPartition("orders", 0): 8})
    worker = threading.Thread(target=come_and_go)
    worker.start()
    has_begun.wait()
    try:
        status, report = check("restless", "--max-rebalances", "0", "--within", "2s")
    finally:
        is_over.set()
        worker.join()
    assert status == 3
    [row] = report["checks"]
    assert row["measure"] == "rebalances"
    assert row["value"] >= 1
    assert check("audit", "--max-rebalances", "0", "--within", "200ms")[0] == 0


def test_a_table_for_people(servers: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--max-lag", "7", "--bootstrap-server", servers]) == 3
    said = capsys.readouterr()
    assert [line.split() for line in said.out.splitlines()[1:] if line][-1][:5] == ["search", "lag", "broken", "8", "7"]
    assert "groups are within their limits" in said.err


def test_an_unreachable_cluster_is_a_problem(groupkeeper: Any) -> None:
    status, report = groupkeeper("check", "--max-lag", "7", "--bootstrap-server", "127.0.0.1:1", "--timeout", "300ms")
    assert (status, report["problems"][0]["error"]) == (1, "CONNECTION_FAILED")


def test_several_clusters(
    servers: str, groupkeeper: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    contexts = tmp_path / "groupkeeper" / "contexts"
    contexts.mkdir(parents=True)
    (contexts / "gone.properties").write_text("bootstrap.servers=127.0.0.1:1\ndefault.api.timeout.ms=500\n")
    (contexts / "prod.properties").write_text(f"bootstrap.servers={servers}\n")
    run = partial(groupkeeper, "check")
    prod = ["--bootstrap-server", f"prod={servers}"]
    both = ["--context", "prod", "--context", "dr"]
    all_three = ["--context", "gone", *both]
    with BackgroundBroker() as other:
        (contexts / "dr.properties").write_text(f"bootstrap.servers={other.bootstrap_servers}\n")
        make_topic(other.bootstrap_servers, "orders")
        commit(other.bootstrap_servers, "search", {TopicPartition("orders", 0): 0})
        status, report = run("[abs]*", "--max-lag", "7", "--show-ok", *both)
        assert status == 3
        assert [(row["cluster"], row["group"], row["verdict"]) for row in report["checks"]] == [
            ("prod", "audit", "ok"),
            ("prod", "billing", "ok"),
            ("prod", "search", "broken"),
            ("dr", "search", "ok"),
        ]
        found = report["notes"]
        assert found == ["prod: 2 of 3 groups are within their limits", "dr: 1 of 1 groups are within their limits"]
        status, report = run("billing", "--max-lag", "7", *both)
        assert (status, report["checks"]) == (1, [])
        assert [(one["cluster"], one["error"]) for one in report["problems"]] == [("dr", "GROUP_ID_NOT_FOUND")]
        # A cluster that is gone takes nothing from the others, and the worst status is that of the whole.
        status, report = run("[abs]*", "--max-lag", "8", *all_three)
        assert (status, [(one["cluster"], one["error"]) for one in report["problems"]]) == (
            1,
            [("gone", "CONNECTION_FAILED")],
        )
        assert "prod: 3 of 3 groups are within their limits" in report["notes"]
        assert run("--max-lag", "7", *all_three)[0] == 3
        assert main(["check", "--max-lag", "7", *all_three]) == 3
        said = capsys.readouterr()
        assert said.out.split("\n")[1].split() == ["prod", "search", "lag", "broken", "8", "7", "-", "orders", "0"]
        assert "error: cluster gone: " in said.err
    with pytest.raises(SystemExit) as ended:
        main(["check", "--max-lag", "7", *prod, *prod])
    assert ended.value.code == 2
    assert "two clusters are called 'prod'" in capsys.readouterr().err
