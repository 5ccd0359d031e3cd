"""tables.STATUS: how groups are doing, by wall-clock time.

What counts is how long a record has been waiting while its group stood still: not how often a group commits, not how
many records a topic gets, and never the lag at the time of the last commit.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import STATUS
from groupkeeper.pipeline.transforms.paces import usual
from groupkeeper.pipeline.transforms.times import after, before, ms_between

__all__ = ["ORDER", "RULES", "StatusRules", "status"]

_KEY = ["cluster", "group_id", "topic", "partition"]

ORDER = ("ok", "unknown", "unstable", "lagging", "rewound", "stalled", "stopped", "losing")
"""From best to worst: a group is as its worst partition, and unstable when it rebalances all the time."""


class StatusRules(NamedTuple):
    """Times in milliseconds.

    A group that commits seldom is given `intervals` times its usual time between commits, or between moves ahead,
    within the bounds `patience_ms` and `most_patience_ms`; one without members `empty_patience_ms`. A record that has
    waited for `lagging_ms` makes a group that moves on lag. Moves back are looked at as far back as `look_back_ms`; a
    group without members that has committed nothing since loses no records, it has been left. One that has rebalanced
    `rebalances` times in the last `rebalances_ms` is unstable. A commit that is younger than `recent_ms` is one of now.
    """

    lagging_ms: int = 5 * 60 * 1000
    patience_ms: int = 10 * 60 * 1000
    most_patience_ms: int = 3 * 3600 * 1000
    empty_patience_ms: int = 60 * 1000
    intervals: int = 3
    look_back_ms: int = 24 * 3600 * 1000
    rebalances: int = 10
    rebalances_ms: int = 10 * 60 * 1000
    recent_ms: int = 60 * 1000


RULES = StatusRules()
"""The defaults."""


_OF_UNKNOWN_AGE = "there are records to read, of unknown age"


def status(
    paces: DataFrame,
    lag: DataFrame,
    rewinds: DataFrame,
    groups: DataFrame,
    facts: DataFrame,
    rules: StatusRules = RULES,
) -> DataFrame:
    """Of rows of the tables of those names (tables.state has `paces` and, as GROUP_FACTS, `facts`), at the instant of
    each cluster's measurement.

    losing: records were deleted before it read them · stopped: a record waits, and nothing was committed for as long ·
    stalled: commits come, but of the same offset · rewound: behind where it had been, and on the way · lagging: the
    oldest record to read is old, and progress is made · unstable, of the group as a whole: it rebalances too often.

    Times of commits are the coordinator's, a record's is its producer's or broker's, the measurement's is this
    machine's: they are compared as they are, so that a clock which is off by a minute moves the limits by a minute.
    """
    now = F.col("measured_time")
    gaps = (usual(f"{each}_gaps").alias(f"{each}_gap") for each in ("commit", "move"))
    steps = paces.select(*_KEY, "moved_time", "first_time", *gaps)
    gone_back = _gone_back(rewinds, lag, rules)
    known = (
        lag.join(steps, _KEY, "left")
        .join(gone_back, _KEY, "left")
        .join(groups.select("cluster", "group_id", "group_type", "members"), ["cluster", "group_id"], "left")
        .withColumn(
            "is_empty", F.coalesce((F.col("members") == 0) & ~F.col("group_type").isin("simple", "spark"), F.lit(False))
        )
        .withColumn("commit_patience", _patience("commit_gap", rules))
        .withColumn("move_patience", F.greatest("commit_patience", _patience("move_gap", rules)))
        .withColumn("quiet_ms", F.least("lag_ms", ms_between(F.col("commit_time"), now)))
        .withColumn(
            "stuck_ms", F.least("lag_ms", ms_between(F.coalesce("moved_time", "first_time", "commit_time"), now))
        )
    )
    judged = known.withColumn("verdict", _verdict(rules)).select(
        *_KEY,
        F.col("verdict.status").alias("status"),
        F.col("verdict.since").alias("since_time"),
        "lag",
        F.col("verdict.rule").alias("rule"),
        "lag_ms",
    )
    rebalances = _rebalances(facts, lag, rules)
    return judged.unionByName(_by_group(judged, rebalances, rules)).select(*STATUS.names)


def _gone_back(rewinds: DataFrame, lag: DataFrame, rules: StatusRules) -> DataFrame:
    """How far each partition had been before it was put back, and when that was. An offset beyond the log has never
    been reached.
    """
    recent = (
        rewinds.where("direction = 'back'")
        .join(lag.select(*_KEY, "measured_time", "log_end_offset"), _KEY)
        .where("coalesce(from_offset <= log_end_offset, true)")
    )
    return (
        recent.where(F.col("rewind_time") >= before(F.col("measured_time"), rules.look_back_ms))
        .groupBy(*_KEY)
        .agg(F.max("from_offset").alias("had_been"), F.max("rewind_time").alias("rewind_time"))
    )


def _patience(usual_gap: str, rules: StatusRules) -> Column:
    usual = F.coalesce(F.col(usual_gap) * rules.intervals, F.lit(0))
    bounded = F.least(F.greatest(usual, F.lit(rules.patience_ms)), F.lit(rules.most_patience_ms))
    return F.when(F.col("is_empty"), F.lit(rules.empty_patience_ms)).otherwise(bounded)


def _verdict(rules: StatusRules) -> Column:
    now = F.col("measured_time")
    waits = F.format_string("the oldest record to read has waited for %s", _shown(F.col("lag_ms")))
    no_members = F.when(F.col("is_empty"), "; the group has no members").otherwise("")
    return (
        F.when(
            F.col("lag").isNull(),
            _of("unknown", None, F.coalesce("problem", F.lit("the partition could not be asked"))),
        )
        .when(_is_losing(rules), _of("losing", None, _lost()))
        .when(F.col("lag") == 0, _of("ok", None, F.lit("nothing to read")))
        .when(F.col("lag_ms").isNull(), _of("unknown", None, F.concat_ws(": ", F.lit(_OF_UNKNOWN_AGE), "problem")))
        .when(F.col("lag_ms") == 0, _of("ok", None, F.lit("no record waits: what is left is new, or markers only")))
        .when(
            F.col("quiet_ms") >= F.col("commit_patience"),
            _of(
                "stopped",
                before(now, F.col("quiet_ms")),
                F.concat(waits, F.lit(", and nothing was committed for "), _shown(F.col("quiet_ms")), no_members),
            ),
        )
        .when(
            F.col("stuck_ms") >= F.col("move_patience"),
            _of(
                "stalled",
                before(now, F.col("stuck_ms")),
                F.concat(waits, F.lit(", and commits are of the same offset for "), _shown(F.col("stuck_ms"))),
            ),
        )
        .when(
            F.col("committed_offset") < F.col("had_been"),
            _of(
                "rewound",
                F.col("rewind_time"),
                F.format_string("it had been at offset %s, and is at %s", "had_been", "committed_offset"),
            ),
        )
        .when(
            F.col("lag_ms") >= rules.lagging_ms,
            _of(
                "lagging",
                after(before(now, F.col("lag_ms")), rules.lagging_ms),
                F.concat(waits, _last_commit(rules), no_members),
            ),
        )
        .otherwise(_of("ok", None, waits))
    )


def _is_losing(rules: StatusRules) -> Column:
    since_commit = ms_between(F.col("commit_time"), F.col("measured_time"))
    is_in_use = (F.col("members") > 0) | (since_commit < rules.look_back_ms)
    is_below = (F.col("committed_offset") >= 0) & (F.col("committed_offset") < F.col("log_start_offset"))
    return is_below & F.coalesce(is_in_use, F.lit(False))


def _lost() -> Column:
    return F.format_string(
        "%,d records were deleted before it read them: it is at offset %d, the log begins at %d",
        F.col("log_start_offset") - F.col("committed_offset"),
        "committed_offset",
        "log_start_offset",
    )


def _last_commit(rules: StatusRules) -> Column:
    since_commit = ms_between(F.col("commit_time"), F.col("measured_time"))
    earlier = F.concat(F.lit("; its last commit was "), _shown(since_commit), F.lit(" before"))
    return F.when(since_commit < rules.recent_ms, F.lit("; committed recently")).otherwise(earlier)


def _of(status: str, since: Column | None, rule: Column) -> Column:
    time = F.lit(None).cast("timestamp") if since is None else since
    return F.struct(F.lit(status).alias("status"), time.alias("since"), rule.alias("rule"))


def _shown(milliseconds: Column) -> Column:
    """As report.words.duration has it: the two largest units."""
    seconds = F.floor(milliseconds / 1000)
    shown = F.format_string("%d s", seconds)
    for size, unit, below, lower in ((60, "min", 1, "s"), (3600, "h", 60, "min"), (86400, "d", 3600, "h")):
        rest = F.floor(seconds % size / below)
        more = F.when(rest > 0, F.format_string(f" %d {lower}", rest)).otherwise("")
        whole = F.concat(F.format_string(f"%,d {unit}", F.floor(seconds / size)), more)
        shown = F.when(seconds >= size, whole).otherwise(shown)
    return F.when((milliseconds > 0) & (milliseconds < 1000), "under 1 s").otherwise(shown)


def _rebalances(facts: DataFrame, lag: DataFrame, rules: StatusRules) -> DataFrame:
    """How often groups have rebalanced lately, and from when on, of those that have too often."""
    now = lag.groupBy("cluster").agg(F.max("measured_time").alias("now"))
    since = before(F.col("now"), rules.rebalances_ms)
    return (
        facts.join(F.broadcast(now), "cluster")
        .withColumn("lately", F.filter("rebalanced", lambda time: time >= since))
        .select(
            "cluster",
            "group_id",
            F.array_size("lately").alias("rebalances"),
            F.array_min("lately").alias("unstable_since"),
        )
        .where(F.col("rebalances") >= rules.rebalances)
    )


def _by_group(judged: DataFrame, rebalances: DataFrame, rules: StatusRules) -> DataFrame:
    """A row for each group: its worst partition speaks for it, unless that it rebalances all the time is worse."""
    rank = F.array_position(F.array(*(F.lit(each) for each in ORDER)), F.col("status"))
    worst = F.max_by(
        F.struct("status", "rule", "topic", "partition"),
        F.struct(rank, F.coalesce("lag_ms", F.lit(0)), "topic", "partition"),
    )
    grouped = (
        judged.withColumn("rank", rank)
        .groupBy("cluster", "group_id")
        .agg(
            worst.alias("worst"),
            F.min(F.struct((-F.col("rank")).alias("rank"), "since_time")).alias("first"),
            F.sum("lag").alias("lag"),
            F.max("lag_ms").alias("lag_ms"),
        )
    )
    of_partition = F.format_string("%s-%s: %s", "worst.topic", "worst.partition", "worst.rule")
    often = F.format_string(f"%d rebalances in the last {rules.rebalances_ms // 60_000} min", "rebalances")
    is_often = F.col("rebalances").isNotNull()
    is_unstable = is_often & (-F.coalesce("first.rank", F.lit(0)) < ORDER.index("unstable") + 1)
    rule = F.when(is_unstable, often).when(is_often, F.concat(of_partition, F.lit("; "), often)).otherwise(of_partition)
    joined = grouped.join(rebalances, ["cluster", "group_id"], "full")
    return joined.select(
        "cluster",
        "group_id",
        F.lit(None).cast("string").alias("topic"),
        F.lit(None).cast("int").alias("partition"),
        F.when(is_unstable, "unstable").otherwise(F.col("worst.status")).alias("status"),
        F.when(is_unstable, F.col("unstable_since")).otherwise(F.col("first.since_time")).alias("since_time"),
        "lag",
        rule.alias("rule"),
        "lag_ms",
    )
