"""A small fleet, and what docs/questions.md must answer about it: worked out by hand from the rows here.

The same rows are written of two clusters, and each question must give its answer for each: a join that forgets the
cluster doubles it.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.fleet_tables import NOW, write

Row = tuple[Any, ...]

CLUSTERS = ("east", "west")
ASSIGNED = [{"topic": "clicks", "topic_id": None, "partitions": [0]}]
RESET = "groupkeeper groups reset billing --to-offset 2000 --execute"
HOUR_MS = 3_600_000
MIB = 1_000_000


def ago(**of: float) -> datetime:
    return NOW - timedelta(**of)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# Of each table the columns, then a row each. NOW, the instant of all measurements, is Sunday, 2026-03-01 12:00:30.
FLEET: dict[str, tuple[str, *tuple[Row, ...]]] = {
    "freshness": (
        "log_partition behind_ms measured_time problem",
        (0, 0, NOW, None),
        (1, 90_000, NOW, "a transaction is open"),
    ),
    "rejects": (
        "log_partition log_offset log_time reason first_time raw_bytes raw_sha256",
        (3, 8, ago(hours=2), "type 99 is not known", ago(hours=1), 20, "ab12"),
        (3, 9, ago(hours=1), "type 99 is not known", NOW, 20, "ab12"),
        (3, 10, ago(hours=1), "type 98 is not known", NOW, 7, "cd34"),
    ),
    "quality": (
        "table_name check_name result found detail",
        (None, "gaps", "unknown", 7, "7 offsets have no row"),
        ("lag", "keys", "ok", 0, "none"),
        ("rejects", "rejects", "failed", 2, "2 records could not be decoded"),
    ),
    "edges": (
        "group_id topic client_id first_time last_time",
        ("billing", "orders", "billing-app", ago(days=60), NOW),
        ("billing", "orders", None, ago(days=60), ago(minutes=1)),
        ("search", "orders", "search-app", ago(days=3), ago(minutes=2)),
        ("audit", "orders", "audit-tool", ago(days=90), ago(days=44)),
        ("report", "orders", "notebook", ago(days=20), ago(days=10)),
        ("ledger", "payments", "ledger-app", ago(days=60), NOW),
        ("mail", "clicks", "mail-app", ago(days=60), NOW),
        ("mail-test", "outbox", "mail-app", ago(days=50), ago(days=9)),
        ("mail-old", "clicks", "mail-app", ago(days=90), ago(days=80)),
    ),
    "topics": (
        "topic is_internal partitions records_per_s growth_bytes_per_s log_bytes disk_bytes cleanup_policy",
        ("orders", False, 3, 50.0, 5000.0, 3 * MIB, 9 * MIB, "delete"),
        ("clicks", False, 2, 1.0, 0.0, MIB, 2 * MIB, "delete"),
        ("payments", False, 1, 2.0, 10.0, MIB, MIB, "compact"),
        ("legacy", False, 1, 0.0, 0.0, 40 * MIB, 80 * MIB, "delete"),
        ("views", False, 1, 0.0, 0.0, MIB, MIB, "delete"),  # which a query of Spark reads
        ("__consumer_offsets", True, 50, 0.0, 1.0, 1000, 1000, "compact"),
    ),
    "owners": (
        "kind name owner bytes_per_s",
        ("group", "audit", None, None),
        ("group", "billing", "team-billing", 4000.0),
        ("group", "ledger", "team-billing", 200.0),
        ("group", "mail", "team-mail", 100.0),
        ("group", "report", "team-billing", None),
        ("group", "search", "team-search", 5000.0),
        ("topic", "clicks", "team-shop", 100.0),
        ("topic", "legacy", None, None),
        ("topic", "orders", "team-shop", 5000.0),
        ("topic", "payments", "team-billing", 200.0),
        ("topic", "billing", "team-shop", 7.0),  # a topic of a group's name
    ),
    "members": (
        "group_id member_id client_id client_host assigned",
        ("billing", "b1", "billing-app", "/10.0.0.1", ASSIGNED),
        ("billing", "b2", "billing-app", "/10.0.0.9", ASSIGNED),
        ("mail", "m1", "mail-app", "/10.0.0.1", ASSIGNED),
        ("mail", "m2", "mail-app", "/10.0.0.1", ASSIGNED),
        ("mail", "m3", "mail-app", "/10.0.0.3", []),
    ),
    "groups": (
        "group_id group_type group_state members last_commit_time",
        ("audit", "classic", "Empty", 0, ago(days=44)),
        ("billing", "consumer", "Stable", 2, ago(minutes=1)),
        ("copy", "simple", "Empty", 0, ago(minutes=2)),  # which never has members
        ("ledger", "consumer", "Stable", 1, ago(minutes=30)),
        ("mail", "classic", "Stable", 3, NOW),
        ("search", "consumer", "Stable", 1, NOW),
        ("workers", "share", "Stable", 2, None),
        ("query", "spark", None, None, NOW),
    ),
    "status": (
        "group_id topic partition status since_time lag rule",
        ("audit", None, None, "stopped", ago(days=3), 9500, "nothing was committed"),
        ("billing", None, None, "lagging", ago(hours=2), 1010, "the oldest record is old"),
        ("billing", "orders", 0, "lagging", ago(hours=2), 1000, "the oldest record is old"),
        ("search", "orders", 0, "stopped", ago(minutes=5), 6000, "no member has it"),
        ("ledger", None, None, "ok", None, 50, "nothing to read"),
        ("mail", None, None, "unknown", None, None, "the log could not be asked"),
    ),
    "lag": (
        ("group_id topic partition lag committed_lag lag_ms trend catch_up_ms retention_margin_ms "
        "produced_per_s consumed_per_s"),
        ("audit", "orders", 0, 9500, 9500, 73 * HOUR_MS, "growing", None, -HOUR_MS, 20.0, 0.0),
        ("billing", "orders", 0, 1000, 1000, 2 * HOUR_MS, "growing", None, 48 * HOUR_MS, 20.0, 10.0),
        ("billing", "orders", 1, 10, 10, 5000, "shrinking", 60_000, 71 * HOUR_MS, 15.0, 20.0),
        ("billing", "orders", 2, 0, 0, 0, "steady", 0, None, 15.0, 15.0),
        ("copy", "orders", 0, 5, 5, 74 * HOUR_MS, None, None, -2 * HOUR_MS, None, None),
        ("ledger", "payments", 0, 50, 0, HOUR_MS // 2, "growing", None, None, 0.5, 0.0),
        ("mail", "clicks", 0, 0, 0, 0, "steady", 0, None, 1.0, 1.0),
        ("mail", "clicks", 1, 200, 200, 60_000, "steady", None, 100 * HOUR_MS, 1.0, 1.0),
        ("search", "orders", 0, 6000, 6000, 6 * HOUR_MS, "shrinking", 90 * HOUR_MS, 66 * HOUR_MS, 0.006, 0.0245),
        ("search", "orders", 1, 0, 0, 0, "steady", 0, None, 15.0, 15.0),
        ("query", "views", 0, 0, 0, 0, "steady", 0, None, 0.0, 0.0),
    ),
    "lag_history": (
        "group_id topic partition measured_time lag lag_ms",
        ("billing", "orders", 0, ago(minutes=100), 0, 0),  # in time for 60 minutes
        ("billing", "orders", 0, ago(minutes=40), 300, 30_000),  # and for 30 s of 10 minutes
        ("billing", "orders", 0, ago(minutes=30), 400, None),  # not known for 20 minutes
        ("billing", "orders", 0, ago(minutes=10), 900, 600_000),  # late for 10 minutes
        ("billing", "orders", 0, NOW, 1000, 2 * HOUR_MS),
        ("billing", "orders", 0, ago(days=9), 0, 0),
        ("search", "orders", 0, ago(minutes=100), 7000, 90_000),
        ("search", "orders", 0, NOW, 6000, 6 * HOUR_MS),
        ("mail", "clicks", 0, ago(minutes=50), 0, 0),
        ("mail", "clicks", 0, NOW, 0, 0),
        ("audit", "orders", 0, ago(minutes=50), 0, 0),  # and nothing changed since
        ("copy", "orders", 0, ago(minutes=30), 5, HOUR_MS),
    ),
    "stale": (
        "group_id topic partition reason idle_days expires_time lost",
        ("audit", None, None, "idle", 44.0, None, None),
        ("audit", "orders", 0, "below_log_start", 44.0, None, 1500),
        ("billing", "orders", 1, "below_log_start", 0.0, None, 30),
        ("billing", "orders", 2, "below_log_start", 0.0, None, 12),
        ("ghost", "tmp", 0, "topic_deleted", 12.0, None, None),
        ("ghost", "tmp", 1, "topic_deleted", 13.0, None, None),
        ("loader", "clicks", 0, "expiring", 6.8, NOW + timedelta(hours=5), None),
    ),
    "rewinds": (
        ("group_id topic partition rewind_time from_offset to_offset records "
        "direction was_empty log_partition log_offset changed_by command"),
        ("billing", "orders", 0, at("2026-02-24T09:15"), 5000, 2000, 3000, "back", True, 1, 10, "ana", RESET),
        ("billing", "orders", 1, at("2026-02-24T09:15"), 6000, 2000, 4000, "back", True, 1, 11, None, None),
        ("mail", "clicks", 0, at("2026-02-24T23:00"), 250, 240, 10, "back", False, 2, 7, None, None),
        ("search", "orders", 1, at("2026-02-25T00:00"), 100, 700, -600, "ahead", True, 2, 20, None, None),
        ("mail", "clicks", 0, ago(days=40), 20, 0, 20, "back", True, 2, 1, None, None),
    ),
    "commits": (
        "group_id topic partition log_partition log_offset log_time committed_offset metadata is_tombstone removed_by",
        ("billing", "orders", 0, 1, 5, at("2026-02-24T08:00"), 5000, "", False, None),
        ("billing", "orders", 1, 1, 6, at("2026-02-24T08:30"), 6000, "", False, None),
        ("billing", "orders", 2, 1, 7, at("2026-02-24T07:00"), 100, "", False, None),
        ("billing", "orders", 2, 1, 8, at("2026-02-24T08:45"), None, None, True, "deleted"),
        ("billing", "orders", 0, 1, 10, at("2026-02-24T09:15"), 2000, "", False, None),
        ("billing", "orders", 1, 1, 11, at("2026-02-24T09:15"), 2000, "", False, None),
        ("search", "orders", 1, 2, 20, at("2026-02-25T00:00"), 700, "skip the broken ones", False, None),
        ("report", "orders", 0, 2, 30, ago(days=2), None, None, True, "expired"),
        ("report", "orders", 1, 2, 31, ago(days=1), None, None, True, "expired"),
        ("report", "clicks", 1, 2, 3, ago(days=8), None, None, True, "expired"),
    ),
    "rates": (
        "group_id minute offset_commits completed_rebalances",
        ("mail", at("2026-03-01T11:30"), 30, 6),
        ("mail", at("2026-03-01T11:40"), 10, 5),
        ("mail", at("2026-03-01T09:00"), 10, 1),
        ("mail", at("2026-02-27T09:00"), 10, 9),
        ("billing", at("2026-03-01T11:50"), 600, 0),
        ("billing", at("2026-03-01T08:00"), 600, 2),
        ("search", at("2026-03-01T11:50"), 0, 1),
        ("ledger", at("2026-02-28T08:00"), 1, 0),
        (None, at("2026-03-01T11:30"), 9999, 99),
    ),
    "group_events": (
        "group_id event_time event member_id client_id client_host",
        ("mail", at("2026-03-01T11:30"), "joined", "m1", "mail-app", "/10.0.0.1"),
        ("mail", at("2026-03-01T11:31"), "left", "m1", "mail-app", "/10.0.0.1"),
        ("mail", at("2026-03-01T11:32"), "joined", "m2", "mail-app", "/10.0.0.1"),
        ("mail", at("2026-03-01T11:33"), "left", "m2", "mail-app", "/10.0.0.1"),
        ("mail", at("2026-03-01T11:34"), "joined", "m3", "mail-app", "/10.0.0.3"),
        ("mail", at("2026-03-01T11:34"), "rebalanced", "", None, None),
        ("mail", at("2026-02-27T09:00"), "joined", "m0", "mail-app", "/10.0.0.7"),
        ("billing", at("2026-03-01T08:00"), "joined", "b2", "billing-app", "/10.0.0.9"),
    ),
    "log_ends": (
        "topic partition measured_time log_end_offset",
        ("__consumer_offsets", 7, ago(minutes=50), 1000),
        ("__consumer_offsets", 7, NOW, 1600),
        ("__consumer_offsets", 8, ago(minutes=50), 50),
        ("__consumer_offsets", 8, NOW, 90),
        ("__consumer_offsets", 8, ago(days=2), 10),
        ("orders", 0, ago(hours=20), 1000),
        ("orders", 0, ago(hours=10), 5000),
        ("orders", 0, NOW, 10_000),
        ("orders", 1, ago(hours=20), 1000),
        ("orders", 1, NOW, 1500),
        ("orders", 2, ago(hours=20), 1000),
        ("orders", 2, NOW, 1500),
        ("clicks", 0, ago(hours=20), 100),
        ("clicks", 0, NOW, 200),
        ("clicks", 1, ago(hours=20), 100),
        ("clicks", 1, NOW, 200),
    ),
    "transactions": (
        ("topic partition producer_id producer_epoch transactional_id "
        "first_offset held_offsets started_time open_ms is_hanging groups state timeout_ms"),
        ("orders", 2, 88, 3, None, 9900, 100, ago(days=2), 48 * HOUR_MS, True, 0, None, None),
        ("payments", 0, 77, 1, "pay-1", 800, 50, ago(minutes=30), HOUR_MS // 2, False, 1, "Ongoing", HOUR_MS),
    ),
    "share_offsets": (
        "group_id topic partition start_offset lag rejected to_redeliver redelivered most_deliveries write_time",
        ("workers", "jobs", 0, 100, 70, 3, 4, 5, 2, ago(hours=2)),
        ("workers", "jobs", 1, 50, 10, 0, 0, 0, 1, ago(minutes=2)),
        ("workers", "jobs", 2, 60, 0, 0, 0, 1, 3, ago(hours=3)),
        ("workers", "jobs", 3, 0, None, 0, 0, 0, 0, None),
    ),
}  # fmt: skip

# By question: the rows of each cluster, in their order, without the cluster.
ANSWERS: dict[str, list[Row]] = {
    "How fresh are the answers?": [(NOW, 90.0, 1, "a transaction is open")],
    "Which records could not be decoded?": [
        ("type 99 is not known", 2, ago(hours=1), ago(hours=1)),
        ("type 98 is not known", 1, ago(hours=1), NOW),
    ],
    "Which records that could not be decoded are the same?": [("ab12", 20, 2, ago(hours=1))],
    "Which partitions of the offsets topic have not been read to the end?": [(1, 90.0, "a transaction is open")],
    "Which clients are in several groups?": [("mail-app", 2, 2)],
    "How much disk do topics without an owner use?": [(1, 80 * MIB)],
    "Which teams have most lag?": [
        (None, 9505, 2),
        ("team-search", 6000, 1),
        ("team-billing", 1060, 2),
        ("team-mail", 200, 1),
    ],
    "When will open transactions be aborted?": [("payments", 0, "pay-1", "Ongoing", 30.0)],
    "Which share groups have stopped?": [("workers", "jobs", 0, 70, ago(hours=2))],
    "Did the checks of the last run pass?": [
        (None, "gaps", "unknown", 7, "7 offsets have no row"),
        ("rejects", "rejects", "failed", 2, "2 records could not be decoded"),
    ],
    "Which groups read this topic last month?": [
        ("billing", "billing-app", ago(days=60), NOW),
        ("billing", None, ago(days=60), ago(minutes=1)),
        ("search", "search-app", ago(days=3), ago(minutes=2)),
        ("report", "notebook", ago(days=20), ago(days=10)),
    ],
    "Which teams must be told before a topic changes?": [
        ("team-billing", 2, NOW),
        ("team-search", 1, ago(minutes=2)),
    ],
    "Which groups are new?": [("search", "orders", ago(days=3))],
    "Which topics have no readers?": [("legacy", 80 * MIB, 0.0)],
    "Which groups run on this host?": [("billing", "billing-app", 1), ("mail", "mail-app", 2)],
    "How much does each team read and store?": [
        ("team-billing", 4200.0, MIB),
        ("team-mail", 100.0, None),
        ("team-search", 5000.0, None),
        ("team-shop", None, 11 * MIB),
        (None, None, 80 * MIB),
    ],
    "Which groups and topics have no owner?": [("group", "audit"), ("topic", "legacy")],
    "Which groups are not well, and why?": [
        ("audit", None, "stopped", ago(days=3), 9500, "nothing was committed"),
        ("billing", "team-billing", "lagging", ago(hours=2), 1010, "the oldest record is old"),
        ("mail", "team-mail", "unknown", None, None, "the log could not be asked"),
    ],
    "Which groups are furthest behind?": [
        ("audit", 9500, 73 * 60.0, 1),
        ("search", 6000, 360.0, 1),
        ("billing", 1010, 120.0, 2),
        ("mail", 200, 1.0, 1),
        ("ledger", 50, 30.0, 1),
        ("copy", 5, 74 * 60.0, 1),
    ],
    "When will a group have caught up?": [
        ("audit", None, 1),
        ("billing", 1.0, 1),
        ("copy", None, 1),
        ("ledger", None, 1),
        ("mail", None, 1),
        ("search", None, 1),
    ],
    "Which groups have a growing lag?": [
        ("audit", "orders", 0, 9500, 20.0, 0.0),
        ("billing", "orders", 0, 1000, 20.0, 10.0),
        ("ledger", "payments", 0, 50, 0.5, 0.0),
    ],
    "Which groups have most of their lag in one partition?": [
        ("search", "orders", 0, 6000, 100.0),
        ("billing", "orders", 0, 1000, 99.0),
        ("mail", "clicks", 1, 200, 100.0),
    ],
    # billing: 3600 s and 30 s of the 4800 s that are known
    "Was the service level met?": [
        ("copy", "orders", 0.0),
        ("search", "orders", 0.0),
        ("billing", "orders", 75.63),
        ("audit", "orders", 100.0),
        ("mail", "clicks", 100.0),
    ],
    "How did the lag of a group develop?": [
        ("orders", 0, at("2026-03-01T10:00"), 0),
        ("orders", 0, at("2026-03-01T11:00"), 900),
        ("orders", 0, at("2026-03-01T12:00"), 1000),
    ],
    "Which groups have no offset for some partitions?": [("search", "orders", 3, 2)],
    "Which groups have lag and no members?": [("audit", 9500, ago(days=44))],
    "Which group will lose data this week?": [
        ("copy", "orders", 0, 5, -2.0),
        ("audit", "orders", 0, 9500, -1.0),
        ("billing", "orders", 0, 1000, 48.0),
        ("search", "orders", 0, 6000, 66.0),
    ],
    "Which groups have lost records already?": [("audit", "orders", 1500, 1), ("billing", "orders", 42, 2)],
    "Which commits skipped records?": [
        (at("2026-02-25T00:00"), "search", "orders", 1, 100, 700, 600, "skip the broken ones"),
    ],
    "Which offsets expire within a day?": [("loader", "clicks", 0, NOW + timedelta(hours=5))],
    "Which offsets were removed last week, and by what?": [
        ("report", "orders", "expired", 2, ago(days=1)),
        ("billing", "orders", "deleted", 1, at("2026-02-24T08:45")),
    ],
    "What did the reset of Tuesday change?": [
        (at("2026-02-24T09:15"), "billing", "orders", 0, 5000, 2000, 3000, "ana", RESET),
        (at("2026-02-24T09:15"), "billing", "orders", 1, 6000, 2000, 4000, None, None),
    ],
    "Which offsets had a group committed at that time?": [
        ("orders", 0, 5000, at("2026-02-24T08:00")),
        ("orders", 1, 6000, at("2026-02-24T08:30")),
    ],
    "How many records were read again, and by a reset?": [
        ("billing", "orders", 7000, 7000),
        ("mail", "clicks", 10, 0),
    ],
    "Which groups rebalance most, and why?": [
        ("mail", 12, 3, 2, 2),
        ("billing", 2, 1, 0, 1),
        ("search", 1, None, None, None),
    ],
    "Which clients join and leave most often?": [
        ("mail", "mail-app", "/10.0.0.1", 2, 2),
        ("billing", "billing-app", "/10.0.0.9", 1, 0),
        ("mail", "mail-app", "/10.0.0.3", 1, 0),
    ],
    "Which groups had a storm of rebalances?": [("mail", at("2026-03-01T11:00"), 11)],
    "Which members have no partitions?": [("mail", "m3", "mail-app", "/10.0.0.3")],
    "Which groups commit most?": [("billing", 600, 0.167), ("mail", 40, 0.011), ("search", 0, 0.0)],
    "Which partitions of the offsets topic get most records?": [(7, 600), (8, 40)],
    "Which partitions get most of a topic's records?": [("orders", 0, 9000, 90.0)],
    "How many records did topics get in each hour?": [
        ("orders", at("2026-03-01T12:00"), 6000),
        ("orders", at("2026-03-01T02:00"), 4000),
        ("__consumer_offsets", at("2026-03-01T12:00"), 640),
        ("clicks", at("2026-03-01T12:00"), 200),
        ("__consumer_offsets", at("2026-03-01T11:00"), 40),
    ],
    "Which topics grow most?": [
        ("orders", 432_000_000.0, 3 * MIB, "delete"),
        ("payments", 864_000.0, MIB, "compact"),
        ("__consumer_offsets", 86_400.0, 1000, "compact"),
    ],
    "Which open transactions block readers?": [
        ("orders", 2, 88, None, 100, 48.0, 0),
        ("payments", 0, 77, "pay-1", 50, 0.5, 1),
    ],
    "Which transactions are hanging?": [("orders", 2, 88, 3, 9900, ago(days=2))],
    "Which groups wait only for an open transaction?": [("ledger", "payments", 0, 50, "pay-1")],
    "How far behind are share groups?": [("workers", "jobs", 80, 1, 4)],
    "Where do share groups reject or redeliver records?": [
        ("workers", "jobs", 0, 100, 3, 5, 2),
        ("workers", "jobs", 2, 60, 0, 1, 3),
    ],
    "Which groups are unused?": [("audit", None, 44.0)],
    "Which offsets are of deleted topics?": [("ghost", "tmp", 2, 12.0)],
}  # fmt: skip


def written(folder: Path) -> Path:
    """The tables of the fleet, as parquet."""
    return write(folder, {name: [*_rows(*given)] for name, given in FLEET.items()})


def _rows(columns: str, *rows: Row) -> list[Mapping[str, Any]]:
    names = columns.split()
    return [{"cluster": cluster, **dict(zip(names, row, strict=True))} for cluster in CLUSTERS for row in rows]
