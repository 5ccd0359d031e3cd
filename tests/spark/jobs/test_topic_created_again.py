"""A topic that is deleted and created again under its name is another one: it is told once, and no rate mixes both."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.acts import ask, commit, make_topic, new_topic, produce

from groupkeeper.pipeline.jobs.snapshot import snapshot


@pytest.mark.long
def test_a_topic_that_was_created_again_is_told_once(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    topic = new_topic(servers)
    group = f"reads-{topic}"
    options = {"kafka.bootstrap.servers": servers, "cluster": "c"}

    def refresh() -> list[str]:
        summary = snapshot(spark, options, str(tmp_path))
        assert summary.problems == []
        return [each for each in summary.notes if f"topic {topic} was deleted and created again" in each]

    def only(table: str) -> dict[str, object]:
        (row,) = [row for row in pq.read_table(tmp_path / table).to_pylist() if row["topic"] == topic]
        return dict(row)

    produce(servers, topic, "x" * 10)
    commit(servers, group, {(topic, 0): 5})
    assert refresh() == []
    before = only("topics")["topic_id"]
    ask(servers, lambda admin: admin.delete_topics([topic]))
    make_topic(servers, topic)
    produce(servers, topic, "x" * 40)  # the log is longer, the offset further: only the id tells that it is another one
    commit(servers, group, {(topic, 0): 30})
    (said,) = refresh()
    after = only("topics")
    assert said.startswith("cluster c: ")
    assert before != after["topic_id"]
    assert f"its id was {before}, and is {after['topic_id']}" in said
    assert [each["log_end_offset"] for each in after["measures"]] == [40]  # type: ignore[attr-defined]
    lag = only("lag")
    assert (lag["lag"], lag["trend"], lag["produced_per_s"]) == (10, None, None)
    assert [each["log_end_offset"] for each in lag["measures"]] == [40]  # type: ignore[attr-defined]
    assert refresh() == []
