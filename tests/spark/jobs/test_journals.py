"""Resets and undos by groupkeeper's commands, found again in the table of rewinds."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.acts import commit, member, new_topic
from tests.spark.kafka.test_source import produce

from groupkeeper.cli.main import main
from groupkeeper.operations.plans.journal import Journal
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.report.moves import made_by, moves_of
from groupkeeper.pipeline.report.reading import read_report
from groupkeeper.testing.background import BackgroundBroker


def rewinds(tables: Path) -> list[dict[str, Any]]:
    return sorted(pq.read_table(tables / "rewinds").to_pylist(), key=lambda row: row["log_offset"])


@pytest.mark.long
def test_who_reset_a_group_and_who_took_it_back(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journals of two hosts; the group's own move back is in none."""
    tables, journals = tmp_path / "tables", tmp_path / "journals"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    properties = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}
    with BackgroundBroker(properties=properties) as broker:
        servers = broker.bootstrap_servers
        topic = new_topic(servers)
        options = {"kafka.bootstrap.servers": servers, "cluster": "c"}
        produce(servers, topic, 90)
        member(servers, "g", topic).close()
        commit(servers, "g", {(topic, 0): 8})
        commit(servers, "g", {(topic, 0): 7})
        assert not snapshot(spark, options, str(tables), journals=[str(journals)]).problems  # there is none yet
        monkeypatch.setenv("GROUPKEEPER_JOURNAL", str(journals / "ops1" / "journal.jsonl"))
        words = ["groups", "reset", "g", "--to-offset", "2", "--topic", f"{topic}:0", "--bootstrap-server", servers]
        assert main([*words, "--execute"]) == 0
        assert not snapshot(spark, options, str(tables), journals=[str(journals)]).problems
        own, reset = rewinds(tables)
        assert (own["from_offset"], own["to_offset"], own["change_id"]) == (8, 7, None)
        (made,), _ = Journal(journals / "ops1" / "journal.jsonl").changes()
        assert (reset["from_offset"], reset["to_offset"], reset["change_kind"]) == (7, 2, "reset")
        assert (reset["change_id"], reset["changed_by"]) == (made.head.id, made.head.user)
        assert reset["changed_on"] == made.head.host
        assert "groups reset g --to-offset 2" in reset["command"]
        assert reset["undoes"] is None

        assert main(["undo", "--bootstrap-server", servers, "--execute"]) == 0
        assert not snapshot(spark, options, str(tables)).problems  # by a run without journals
        undo = rewinds(tables)[-1]
        assert (undo["from_offset"], undo["to_offset"], undo["change_id"]) == (2, 7, None)
        report = read_report(str(tables), hours=1, top=3, journals=[str(journals)])
        last, first = moves_of(report.rewinds)
        assert (made_by(first), len(last.undone)) == ("a reset, as it had no members: no journal entry is known", 1)
        assert made_by(last).startswith("reset by ")
        assert made_by(last.undone[0]).endswith(f", of {made.head.id}")

        assert not snapshot(spark, options, str(tables), journals=[str(journals)], from_start=True).problems
        assert [row["change_kind"] for row in rewinds(tables)] == [None, "reset", "undo"]
        assert rewinds(tables)[-1]["undoes"] == made.head.id
