"""tables.GROUP_EVENTS: what happened to groups, from consecutive records of the same key."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import GROUP_EVENTS
from groupkeeper.pipeline.transforms.record_kinds import IS_GROUP, IS_MEMBER, IS_TARGET

__all__ = ["group_events"]

_GROUP = ("cluster", "group_id")
_PERSON = ("member_id", "instance_id", "client_id", "client_host")
_NO_PEOPLE = "array<struct<member_id:string,instance_id:string,client_id:string,client_host:string>>"
_NUMBERS = ("generation", "group_epoch", "assignment_epoch")
"""What grows in the life of a group: a record has one of them."""
_EVENT = "struct<event:string,member_id:string,instance_id:string,client_id:string,client_host:string>"


def group_events(group_records: DataFrame, facts: DataFrame | None = None) -> DataFrame:
    """Events of rows of tables.GROUP_RECORDS. Where compaction has removed earlier records, a group's first remaining
    record gives only its own contents: not that the group was created or its members joined then.

    Where the rows begin with carried ones (transforms.latest.last_records), `facts` (tables.state.GROUP_FACTS) tell
    since when groups have been there; the events of carried rows are none.
    """
    steps = _with_migration(_with_count(_steps(group_records), facts))
    found = steps.select("*", F.explode(_events()).alias("found")).select(
        *_GROUP,
        F.col("log_time").alias("event_time"),
        *(F.col(f"found.{name}").alias(name) for name in ("event", *_PERSON)),
        "generation",
        "group_epoch",
        F.col("count").alias("members"),
        "log_partition",
        "log_offset",
    )
    return found.select(*GROUP_EVENTS.names)


def _steps(group_records: DataFrame) -> DataFrame:
    """Records that show events, with the contents of the previous record of the same key as `last`."""
    kind = F.expr(
        f"CASE WHEN {IS_GROUP} THEN 'group' WHEN {IS_MEMBER} THEN 'member' WHEN {IS_TARGET} THEN 'target' END"
    )
    people = F.transform("members", lambda member: F.struct(*(member[name].alias(name) for name in _PERSON)))
    columns = ["is_tombstone", "generation", "group_epoch", "assignment_epoch"]
    persons = [name for name in _PERSON if name != "member_id"]
    by_key = Window.partitionBy(*_GROUP, "record_name", "member_id").orderBy("log_offset")
    return (
        group_records.where("problem IS NULL AND group_id IS NOT NULL")
        .withColumn("kind", kind)
        .where("kind IS NOT NULL")
        .withColumn("people", F.coalesce(people, F.array().cast(_NO_PEOPLE)))
        .select(
            *_GROUP, "group_type", "record_name", "kind", "member_id", *persons, *columns, "people", "log_time",
            "log_partition", "log_offset",
        )
        .withColumn("last", F.lag(F.struct(*columns, "people", *persons)).over(by_key))
        # A number that falls is that of a group made again: compaction has taken the tombstone between.
        .withColumn("was_there", F.coalesce(~F.col("last.is_tombstone"), F.lit(False)) & ~_falls())
    )  # fmt: skip


def _falls() -> Column:
    now, before = (F.coalesce(*(of + name for name in _NUMBERS)) for of in ("", "last."))
    return F.coalesce(now < before, F.lit(False))


def _with_count(steps: DataFrame, facts: DataFrame | None) -> DataFrame:
    """How many members the group has after each step, and when the first step was that is left of it."""
    change = F.when(F.col("kind") != "member", 0).otherwise(
        (~F.col("is_tombstone")).cast("int") - F.col("was_there").cast("int")
    )
    so_far = Window.partitionBy(*_GROUP).orderBy("log_offset")
    is_classic = (F.col("group_type") == "classic") & ~F.col("is_tombstone")
    counted = steps.withColumn("count", F.sum(change).over(so_far).cast("int")).withColumn(
        "count", F.when(is_classic, F.array_size("people")).otherwise(F.greatest("count", F.lit(0)))
    )
    counted = counted.withColumn("began", F.min("log_time").over(so_far))
    if facts is None:
        return counted
    then = facts.select(*_GROUP, F.col("began").alias("had_begun"))
    return counted.join(then, list(_GROUP), "left").withColumn("began", F.least("began", "had_begun"))


def _with_migration(steps: DataFrame) -> DataFrame:
    """Where a group comes back at once as another type (KIP-848), none joins or leaves: its members are in `moved`."""
    in_order = Window.partitionBy(*_GROUP).orderBy("log_offset")
    ids = F.transform("people", lambda person: person["member_id"])
    levels = steps.where("kind = 'group'").select(*_GROUP, "group_type", "is_tombstone", "log_time", "log_offset",
        F.when(F.col("is_tombstone"), F.transform("last.people", lambda person: person["member_id"])).otherwise(ids)
        .alias("ids"),
    )  # fmt: skip
    last = F.lag(F.struct("group_type", "is_tombstone", "log_time", "log_offset", "ids")).over(in_order)
    moves = (
        levels.withColumn("from", last)
        .where("NOT is_tombstone AND from.group_type != group_type AND from.is_tombstone AND from.log_time = log_time")
        .select(
            *_GROUP,
            "log_time",
            F.col("log_offset").alias("moved_in"),
            F.col("from.log_offset").alias("moved_out"),
            F.coalesce(F.when(F.col("group_type") == "classic", F.col("ids")), "from.ids").alias("moved"),
        )
        .groupBy(*_GROUP, "log_time")  # a group may come and go within a millisecond
        .agg(
            F.collect_list("moved_in").alias("moved_in"),
            F.collect_list("moved_out").alias("moved_out"),
            F.flatten(F.collect_list("moved")).alias("moved"),
        )
    )
    return steps.join(moves, [*_GROUP, "log_time"], "left")


def _events() -> Column:
    """The events that one step shows."""
    is_new = ~F.col("is_tombstone") & ~F.col("was_there")
    is_first = F.col("last").isNull()
    is_young = F.coalesce(F.col("generation"), F.col("group_epoch"), F.lit(0)) <= 1
    is_group, is_member, is_target = (F.col("kind") == kind for kind in ("group", "member", "target"))
    is_classic = F.col("group_type") == "classic"
    moves_in, moves_out = (
        F.coalesce(F.array_contains(name, F.col("log_offset")), F.lit(False)) for name in ("moved_in", "moved_out")
    )
    moved = F.coalesce(F.array_contains("moved", F.col("member_id")), F.lit(False))
    has_rebalanced = _grows("generation") & is_group & is_classic | _grows("assignment_epoch") & is_target
    is_emptied = (
        is_group
        & is_classic
        & ~F.col("is_tombstone")
        & (F.coalesce(F.array_size("last.people"), F.lit(1)) > 0)
        & ~is_young
        | is_member & F.col("is_tombstone") & F.col("was_there") & ~moved
    )
    of_group: Mapping[str, Column] = {
        "migrated": moves_in,
        "created": is_group & is_new & ~moves_in & (is_young | _is_second_epoch_of_new() | ~is_first),
        "deleted": is_group & F.col("is_tombstone") & ~moves_out,  # one of offsets only has no other record
        "epoch_bumped": is_group & F.col("was_there") & _grows("group_epoch"),
        "rebalanced": has_rebalanced & (F.col("count") > 0),
        "emptied": is_emptied & (F.col("count") == 0),
    }
    no_member = [F.lit(""), *(F.lit(None).cast("string") for _ in _PERSON[1:])]
    person = [F.coalesce(F.col(name), F.col(f"last.{name}")) for name in _PERSON[1:]]
    of_member = {
        "joined": is_member & is_new & ~moved,
        "left": is_member & F.col("is_tombstone") & ~moved,  # of one without records: compaction has taken them
    }
    single = [_event(name, when, no_member) for name, when in of_group.items()]
    single += [_event(name, when, [F.col("member_id"), *person]) for name, when in of_member.items()]
    knows_before = is_group & is_classic & ~F.col("is_tombstone") & ~moves_in & (~is_first | is_young)
    before = F.when(F.col("was_there"), F.col("last.people")).otherwise(F.array().cast(_NO_PEOPLE))
    several = F.when(
        knows_before,
        F.concat(_missing("joined", F.col("people"), before), _missing("left", before, F.col("people"))),
    ).otherwise(F.array().cast(f"array<{_EVENT}>"))
    return F.concat(F.filter(F.array(*single), lambda each: each.isNotNull()), several)


def _is_second_epoch_of_new() -> Column:
    """Whether a group of the newer protocols comes to be: since Kafka 4.3 the first epoch in the log is 2, and
    it is written together with the one member that came. An epoch 2 that compaction has left has others before it.
    """
    return (F.col("group_epoch") == 2) & (F.col("count") == 1) & (F.col("began") == F.col("log_time"))


def _grows(name: str) -> Column:
    """Whether a number is larger than in the record before, or there was none."""
    there = F.col(name).isNotNull() & ~F.col("is_tombstone")
    return there & (~F.col("was_there") | (F.col(name) > F.coalesce(F.col(f"last.{name}"), F.lit(-1))))


def _event(name: str, when: Column, person: list[Column]) -> Column:
    columns = [column.alias(column_name) for column, column_name in zip(person, _PERSON, strict=True)]
    return F.when(when, F.struct(F.lit(name).alias("event"), *columns).cast(_EVENT))


def _missing(event: str, people: Column, others: Column) -> Column:
    """An event for each of `people` that isn't among the others."""
    ids = F.transform(others, lambda person: person["member_id"])
    missing = F.filter(people, lambda person: ~F.array_contains(ids, person["member_id"]))
    return F.transform(
        missing,
        lambda person: F.struct(F.lit(event).alias("event"), *(person[name].alias(name) for name in _PERSON)).cast(
            _EVENT
        ),
    )
