"""tables.RATES, made of the log, say what the broker's own meters of KIP-496 counted meanwhile."""

import uuid
from contextlib import closing

from pyspark.sql import SparkSession
from tests.acts import ask, commit, new_topic, transactions
from tests.differential.wire import Pool
from tests.patience import until
from tests.spark.kafka.test_source import PATIENCE_S, consume, decoded, produce
from tests.spark.transforms.causes import with_causes
from tests.spark.transforms.traces import events_of, listed

from groupkeeper.client.admin.types import TopicPartition as Place
from groupkeeper.pipeline.decode.history import commits, group_records
from groupkeeper.pipeline.storage.lake import OPEN
from groupkeeper.pipeline.tables import RATES
from groupkeeper.pipeline.transforms.rates import rates, rates_of_groups
from groupkeeper.protocol import messages as m
from groupkeeper.testing.background import BackgroundBroker

METERS = {
    "offset_commits": "offset-commit-count",
    "offset_expirations": "offset-expiration-count",
    "offset_deletions": "offset-deletion-count",
    "completed_rebalances": "group-completed-rebalance-count",
}
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0", "offsets.retention.check.interval.ms": "100",
    "offsets.topic.num.partitions": "4", "log.retention.ms": "-1",
}  # fmt: skip


def in_transactions(servers: str, topic: str, outcomes: list[bool]) -> None:
    with transactions(servers, f"t-{uuid.uuid4().hex[:6]}") as begin:
        for number, is_commit in enumerate(outcomes):
            producer = begin({(topic, partition): number for partition in (0, 1)})
            (producer.commit_transaction if is_commit else producer.abort_transaction)(PATIENCE_S)


def test_rates_are_what_the_meters_counted(spark: SparkSession) -> None:  # K496-60, K496-61, K496-62
    with BackgroundBroker(properties=SETTINGS) as broker:
        servers = broker.bootstrap_servers
        topic = new_topic(servers)
        produce(servers, topic, 60)
        for group_id in ("joins", "joins-too"):
            consume(servers, group_id, topic, 60)
        for number in range(5):
            commit(servers, "deleted-one", {(topic, 0): number, (topic, 1): number})
        ask(
            servers,
            lambda admin: admin.delete_consumer_group_offsets("deleted-one", [Place(topic, 0), Place(topic, 2)]),
        )
        for _ in range(2):  # a group of offsets only that comes back
            commit(servers, "deleted-all", {(topic, 0): 1, (topic, 1): 2})
            ask(servers, lambda admin: admin.delete_consumer_groups(["deleted-all"]))
        commit(servers, "soon-gone", {(topic, 2): 3})
        short = [m.OffsetCommitRequestTopic(topic, partitions=[m.OffsetCommitRequestPartition(n, 5) for n in (0, 1)])]
        with closing(Pool(servers)) as pool:
            pool.ask(m.OffsetCommitRequest("soon-gone", topics=short, retention_time_ms=1), 2)
        until(lambda: broker.metric(METERS["offset_expirations"]) >= 2)
        in_transactions(servers, topic, [True, False, True])
        metered = {name: broker.metric(meter) for name, meter in METERS.items()}
        rows = decoded(spark, servers).toArrow()
        records = group_records(rows)
        parts = rates_of_groups(with_causes(commits(rows), records), records, events_of(records))
        told = rates(parts, RATES.arrow.empty_table(), OPEN)
        of_cluster = [row for row in listed(told) if row.group_id is None]
        counted = {name: sum(getattr(row, name) for row in of_cluster) for name in METERS}
        aborted = 2  # of which a reader of committed records knows nothing
        assert counted == metered | {"offset_commits": metered["offset_commits"] - aborted}
        assert (counted["offset_expirations"], counted["offset_deletions"]) == (2, 1)
        assert sum(row.removed_with_group for row in of_cluster) == 4
        assert sum(row.unexplained_removals for row in of_cluster) == 0
