"""tables.MEMBERS: who is in the groups, with what."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import MEMBERS
from groupkeeper.pipeline.tables.log import ASSIGNED
from groupkeeper.pipeline.tables.schema import ddl_of
from groupkeeper.pipeline.transforms.latest import latest_records
from groupkeeper.pipeline.transforms.record_kinds import (
    is_classic_group,
    is_current_assignment,
    is_member,
    is_target_of_member,
)

__all__ = ["members"]

_KEY = ("cluster", "group_id", "member_id")


def members(group_records: DataFrame) -> DataFrame:
    """The members of rows of tables.GROUP_RECORDS."""
    latest = latest_records(group_records)
    return _of_classic_groups(latest).unionByName(_of_other_groups(latest)).select(*MEMBERS.names)


def _of_classic_groups(latest: DataFrame) -> DataFrame:
    own = latest.where(is_classic_group()).select(
        "cluster", "group_id", "group_type", F.explode("members").alias("member")
    )
    nothing = {"rack_id": "string", "member_epoch": "int", "member_state": "string", "subscribed_regex": "string"}
    taken = (
        "member_id", "instance_id", "client_id", "client_host", "rebalance_timeout_ms", "subscribed_topics", "assigned"
    )  # fmt: skip
    return own.select(
        "cluster",
        "group_id",
        "group_type",
        *(F.col(f"member.{name}").alias(name) for name in taken),
        *(F.lit(None).cast(kind).alias(name) for name, kind in nothing.items()),
        F.lit(None).cast(ddl_of(ASSIGNED)).alias("target"),
    )


def _of_other_groups(latest: DataFrame) -> DataFrame:
    member, current, target = is_member(), is_current_assignment(), is_target_of_member()

    def said(name: str, by: Column) -> Column:
        return F.any_value(F.when(by, F.col(name)), ignoreNulls=True).alias(name)

    described = ("instance_id", "client_id", "client_host", "rack_id", "rebalance_timeout_ms", "subscribed_topics")
    own = latest.where("member_id IS NOT NULL AND group_type != 'classic'")
    grouped = own.groupBy(*_KEY).agg(
        F.any_value("group_type").alias("group_type"),
        *(said(name, member) for name in described),
        F.nullif(said("subscribed_regex", member), F.lit("")).alias("subscribed_regex"),
        said("member_epoch", current),
        said("member_state", current),
        said("assigned", current),
        said("assigned", target).alias("target"),
        F.bool_or(member).alias("is_member"),
    )
    is_shown = F.col("group_type") != "streams"  # whose tasks are in group_records as JSON
    nothing = F.array().cast(ddl_of(ASSIGNED))
    for name in ("assigned", "target"):
        grouped = grouped.withColumn(name, F.when(is_shown, F.coalesce(name, nothing)))
    return grouped.where("is_member").drop("is_member")
