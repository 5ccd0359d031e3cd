"""`groupkeeper spark`: checkpoints that Spark 4.3 wrote with its Kafka source (4.2), beside the ends of the logs.

What the queries had read when they were stopped: of `orders` 17 and 5 records (before the second batch 10 and 5), of
`payments` 3. `failing` and `mixed` began at 0 and finished no batch with records. tests/spark has them run. Those that
begin with `groupkeeper` read by that source (one in Spark 4.1), from a cluster that they call east; of another one,
west, they had read 8 and 4 records of `orders`.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.acts import ask, commit, make_topic, produce

from groupkeeper.broker.authorizer import RuleAuthorizer
from groupkeeper.cli.main import main
from groupkeeper.client.admin import Admin
from groupkeeper.testing.background import BackgroundBroker

RECORDED = Path(__file__).parent / "checkpoints"
ENDS = {("orders", 0): 20, ("orders", 1): 5, ("payments", 0): 4}
READ = {("orders", 0): (17, 3), ("orders", 1): (5, 0), ("payments", 0): (3, 1)}
OWN = ("groupkeeper", "groupkeeper-spark41", "groupkeeper-v2")
START_MS = 1_700_000_000_000

Run = Callable[..., tuple[int, Any]]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """Logs with a record for each second; billing has committed in one partition of orders."""
    properties = {"group.initial.rebalance.delay.ms": "0", "log.retention.ms": "-1"}
    with BackgroundBroker(authorizer=RuleAuthorizer(allows_without_rules=True), properties=properties) as broker:
        servers = broker.bootstrap_servers
        make_topic(servers, "orders", 2)
        make_topic(servers, "payments")
        for (topic, partition), end in ENDS.items():
            produce(servers, topic, map(str, range(end)), [partition], times_ms=count(START_MS, 1000))
        commit(servers, "billing", {("orders", 0): 12})
        yield servers


@pytest.fixture
def spark(servers: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str | Path, output: str = "json") -> tuple[int, Any]:
        status = main(["spark", *map(str, words), "--bootstrap-server", servers, "--output", output])
        told = capsys.readouterr()
        return status, json.loads(told.out) if output == "json" else told

    return run


def lags(report: Any) -> dict[tuple[str, str, int], tuple[int, int]]:
    return {
        (row["query"], row["topic"], row["partition"]): (row["next_offset"], row["lag"]) for row in report["offsets"]
    }


def test_lag_is_the_ends_minus_the_checkpoint(spark: Run, servers: str) -> None:
    status, report = spark("lag", RECORDED / "*")
    assert (status, report["problems"], report["schema"]) == (0, [], "spark_lag/1")
    assert lags(report) == {
        ("assigned", "orders", 1): (5, 0),
        ("failing", "orders", 0): (0, 20),
        ("failing", "orders", 1): (0, 5),
        ("format-v2", "orders", 0): (10, 10),
        ("format-v2", "orders", 1): (5, 0),
        **{(name, *place): found for name in OWN for place, found in READ.items()},
        ("mixed", "payments", 0): (0, 4),
        ("orders", "orders", 0): (17, 3),
        ("orders", "orders", 1): (5, 0),
        ("pattern", "orders", 0): (10, 10),
        ("pattern", "orders", 1): (5, 0),
        ("pattern", "payments", 0): (3, 1),
        ("two-sources", "orders", 0): (17, 3),
        ("two-sources", "orders", 1): (5, 0),
        ("two-sources", "payments", 0): (3, 1),
    }
    (first, *_) = [row for row in report["offsets"] if row["query"] == "failing"]
    assert (first["batch"], first["batch_time"], first["running_to"]) == (None, None, 10)
    assert "failing: no batch is done yet" in report["notes"]
    assert f"groupkeeper-clusters: it reads east and west, and this cluster is {id_of(servers)}: " in "".join(
        report["notes"]
    )


def id_of(servers: str) -> str:
    return str(ask(servers, Admin.describe_cluster).cluster_id)


def test_of_several_clusters_the_one_that_is_named(spark: Run) -> None:
    path = RECORDED / "groupkeeper-clusters"
    assert lags(spark("lag", f"east:q={path}")[1]) == {("q", "orders", 0): (17, 3), ("q", "orders", 1): (5, 0)}
    found = lags(spark("lag", f"west:={path}")[1])
    assert found == {("groupkeeper-clusters", "orders", 0): (8, 12), ("groupkeeper-clusters", "orders", 1): (4, 1)}
    assert spark("starting-offsets", "--checkpoint", f"west:={path}", output="table")[1].out == (
        '{"orders": {"0": 8, "1": 4}}\n'
    )
    status, told = spark("starting-offsets", "--checkpoint", path, output="table")
    assert (status, told.out) == (1, "")
    assert "it reads east and west" in told.err


def test_a_context_is_a_name_of_its_cluster(
    servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert main(["context", "add", "west", "--bootstrap-server", servers]) == 0
    capsys.readouterr()
    where = str(RECORDED / "groupkeeper-clusters")
    assert main(["spark", "lag", where, "--context", "west", "--output", "json"]) == 0
    assert [row["next_offset"] for row in json.loads(capsys.readouterr().out)["offsets"]] == [8, 4]


def test_a_cluster_that_is_called_by_its_id(spark: Run, servers: str, tmp_path: Path) -> None:
    own = id_of(servers)
    text = 'v1\n{}\n{"%s": {"orders": {"0": 9}}}\n{"orders":{"0":8,"1":2}}\n7'
    assert lags(spark("lag", edited(tmp_path, "offsets/1", text % own))[1]) == {
        ("edited", "orders", 0): (8, 12), ("edited", "orders", 1): (2, 3),
    }  # fmt: skip
    other = own[::-1]
    (tmp_path / "edited/offsets/1").write_text(text.partition('\n{"orders"')[0] % other)
    status, report = spark("lag", tmp_path / "edited")
    assert (status, lags(report)) == (0, {})
    (note,) = report["notes"]
    assert note.startswith(f"edited: it reads {other}, and this cluster is {own}: ask the other one, or give this")
    assert lags(spark("lag", f"{other}:={tmp_path / 'edited'}")[1]) == {("edited", "orders", 0): (9, 11)}


def test_follow_has_its_offsets_elsewhere(spark: Run, tmp_path: Path) -> None:
    at = tmp_path / "tables/_groupkeeper/checkpoint/5"
    shutil.copytree(RECORDED / "orders", at)
    shutil.rmtree(at / "sources")
    for number in (1, 0):
        (at / f"offsets/{number}").write_text('v1\n{}\n{"tick": 1796008770510000000}')
        status, report = spark("lag", at)
        assert (status, lags(report)) == (1, {})
        assert "is in its tables, not here: see the table freshness" in report["problems"][0]["message"]
        (at / f"commits/{number}").unlink()


def test_where_a_source_began_is_not_always_known(spark: Run, tmp_path: Path) -> None:
    copy = tmp_path / "begun"
    shutil.copytree(RECORDED / "groupkeeper", copy)
    shutil.rmtree(copy / "commits")
    report = spark("lag", copy)[1]
    assert report["offsets"] == []
    assert "began is not written of 3 partitions: wait for the first" in report["notes"][0]


@pytest.mark.parametrize("folder", ["offsets", "commits"])
def test_a_file_that_goes_while_its_folder_is_read_hides_no_other(spark: Run, tmp_path: Path, folder: str) -> None:
    copy = tmp_path / "orders"
    shutil.copytree(RECORDED / "orders", copy)
    (copy / folder / ".2.tmp").symlink_to("gone")  # as what a running query has renamed meanwhile
    assert spark("lag", copy)[1]["offsets"] == spark("lag", RECORDED / "orders")[1]["offsets"]


def test_names_topics_and_order(spark: Run) -> None:
    report = spark("lag", f"mine={RECORDED / 'pattern'}", "--topic", "pay*")[1]
    assert lags(report) == {("mine", "payments", 0): (3, 1)}
    report = spark("lag", RECORDED / "two-sources", "--sort", "lag", "--top", "1")[1]
    assert list(lags(report).values()) == [(17, 3)]


def test_a_batch_that_is_not_done_does_not_count(spark: Run, tmp_path: Path) -> None:
    copy = tmp_path / "orders"
    shutil.copytree(RECORDED / "orders", copy)
    (copy / "commits/1").unlink()
    report = spark("lag", copy)[1]
    assert [(row["next_offset"], row["running_to"], row["batch"]) for row in report["offsets"]] == [
        (10, 17, 0), (5, 5, 0),
    ]  # fmt: skip


def edited(tmp_path: Path, path: str, text: str | None) -> Path:
    copy = tmp_path / "edited"
    shutil.copytree(RECORDED / "orders", copy)
    if text is None:
        (copy / path).unlink()
    else:
        (copy / path).write_text(text)
    return copy


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("offsets/1", "", "offsets/1: it is empty"),
        ("offsets/1", "v1", "offsets/1: it ends after its first line"),
        ("offsets/1", "v3\n{}\n{}", "its format is v3"),
        ("offsets/1", "PAR1\0\0", "offsets/1: it is no file of offsets"),
        ("offsets/1", 'v1\n{}\n{"orders":{"0":', "its offsets are no JSON"),
        ("offsets/1", 'v1\n{}\n{"orders":{"0":"17"}}', "orders-0: expected an offset"),
        ("offsets/1", 'v1\n{}\n{"east": {"orders": {"0": 1', "its offsets are no JSON"),
        ("offsets/1", 'v1\n{}\n{"east": {"orders": {"0": 1.5}}}', "orders-0: expected an offset"),
        ("offsets/1", 'v2\n{}\n{"orders" {"0" 17}}', "expected SOURCE:OFFSETS"),
        ("offsets/1", None, "commits/1 is there, offsets/1 is not"),
    ],
)
def test_a_bad_file_is_named(spark: Run, tmp_path: Path, path: str, text: str | None, said: str) -> None:
    copy = edited(tmp_path, path, text)
    status, report = spark("lag", copy, RECORDED / "assigned")
    (problem,) = report["problems"]
    assert (status, problem["error"]) == (1, "BAD_CHECKPOINT")
    assert str(copy) in problem["message"]
    assert said in problem["message"]
    assert lags(report) == {("assigned", "orders", 1): (5, 0)}  # what can be read is shown


def test_offsets_that_are_none_and_topics_that_are_gone(spark: Run, tmp_path: Path) -> None:
    text = 'v1\n{}\n{"orders":{"0":null,"1":-1},"gone":{"0":7},"payments":{"0":9}}\n-\n{"logOffset":3}'
    status, report = spark("lag", edited(tmp_path, "offsets/1", text))
    assert (status, report["problems"]) == (0, [])
    assert [(row["topic"], row["lag"], row["status"]) for row in report["offsets"]] == [
        ("gone", None, "deleted"), ("payments", 0, "beyond_log_end"),
    ]  # fmt: skip
    assert report["notes"] == ["edited: orders-0 has no offset in it", "edited: orders-1 has no offset in it"]


def test_what_is_no_checkpoint(spark: Run, tmp_path: Path) -> None:
    found = spark("lag", tmp_path, tmp_path / "no", tmp_path / "n*", "hdfs://here/x", f"a={RECORDED}/*")[1]
    messages = [problem["message"] for problem in found["problems"]]
    for message, said in zip(
        messages,
        ("is no checkpoint of a streaming query", "no such folder", "no folder matches", "only Spark", "all would be"),
        strict=True,
    ):
        assert said in message
    shutil.copytree(RECORDED / "orders", tmp_path / "orders")
    found = spark("lag", RECORDED / "orders", tmp_path / "orders")[1]
    assert "are both called orders" in found["problems"][0]["message"]


def test_starting_where_a_group_has_committed(spark: Run) -> None:
    status, told = spark("starting-offsets", "--group", "billing", output="table")
    assert status == 0
    assert json.loads(told.out) == {"orders": {"0": 12, "1": -2}}
    assert told.err == "note: orders-1: nothing is committed: earliest\n"
    status, told = spark("starting-offsets", "--group", "billing", "--without-commit", "latest", output="table")
    assert json.loads(told.out) == {"orders": {"0": 12, "1": -1}}


def test_starting_where_another_query_is(spark: Run, tmp_path: Path) -> None:
    _, told = spark("starting-offsets", "--checkpoint", RECORDED / "two-sources", output="table")
    assert json.loads(told.out) == {"orders": {"0": 17, "1": 5}, "payments": {"0": 3}}
    text = 'v1\n{}\n{"orders":{"0":99,"1":5},"gone":{"0":7}}'
    status, report = spark("starting-offsets", "--checkpoint", edited(tmp_path, "offsets/1", text))
    assert [(row["topic"], row["partition"], row["offset"]) for row in report["offsets"]] == [
        ("orders", 0, 20), ("orders", 1, 5),
    ]  # fmt: skip
    assert (status, len(report["notes"])) == (0, 2)
    assert "99 is past the end of the log, 20" in report["notes"][0]


def test_starting_at_a_time(spark: Run) -> None:
    # 2023-11-14T22:13:20 is the first record of each; record 4 of payments does not exist
    status, told = spark("starting-offsets", "--time", "2023-11-14T22:13:23.5", "--topic", "*", output="table")
    assert json.loads(told.out) == {"orders": {"0": 4, "1": 4}, "payments": {"0": 4}}
    assert (status, told.err) == (0, "note: payments-0: no record is at or after that time: at the end\n")


def test_nothing_is_printed_that_is_not_whole(spark: Run) -> None:
    for words, said in (
        (["--group", "nobody"], "has no offsets"),
        (["--group", "billing", "--topic", "payments"], "no offsets"),
        (["--time", "2026-01-01", "--topic", "orders", "--topic", "nowhere"], "nowhere"),
        (["--checkpoint", "/nowhere"], "no such folder"),
        (["--checkpoint", str(RECORDED / "*")], "name one"),
    ):
        status, told = spark("starting-offsets", *words, output="table")
        assert (status, told.out) == (1, "")
        assert said in told.err
        assert "error: " in told.err
        assert "left out" not in told.err
