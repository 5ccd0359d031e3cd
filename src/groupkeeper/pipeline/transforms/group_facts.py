"""Facts of a group's past that are needed to interpret later records (tables.state.GROUP_FACTS)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline.relations import Rows, keys, loaded, together, values
from groupkeeper.pipeline.tables import GROUPS
from groupkeeper.pipeline.tables.schema import TIME
from groupkeeper.pipeline.tables.state import GROUP_FACTS
from groupkeeper.pipeline.transforms.group_events import SHOWS
from groupkeeper.pipeline.transforms.record_kinds import rows_of
from groupkeeper.rules.status import REBALANCES_MS

_IN_US = {TIME: pa.int64(), pa.list_(TIME): pa.list_(pa.int64())}
_FACTS = pa.schema([(field.name, _IN_US.get(field.type, field.type)) for field in GROUP_FACTS.arrow])
"""GROUP_FACTS with µs since 1970 in place of times."""


def memberships(group_events: Rows) -> pa.Table:
    """By group, the log offsets from which it had members, or had none (`is_empty`)."""
    rows = loaded(group_events, (*GROUPS.key, "log_offset", "members"))
    rows = rows.filter(rows["members"].is_valid())
    found = rows.group_by([*GROUPS.key, "log_offset"], use_threads=False).aggregate([("members", "min")])
    return found.select((*GROUPS.key, "log_offset")).append_column("is_empty", pc.equal(found["members_min"], 0))


def group_facts(group_records: Rows, group_events: Rows, known: Rows) -> pa.Table:
    """GROUP_FACTS from new records and events, and from the `known` facts before these."""
    records = loaded(group_records, (*GROUPS.key, "record_name", "log_time", "problem"))
    records = records.filter(records["group_id"].is_valid())
    events = loaded(group_events, (*GROUPS.key, "event", "event_time"))
    then = loaded(known, GROUP_FACTS.names)
    of_then, *of_new = keys(GROUPS.key, then, records, events)
    is_touched = np.isin(of_then, np.concatenate(of_new))
    facts = {tuple(row.values())[:2]: row for row in then.filter(pa.array(is_touched)).cast(_FACTS).to_pylist()}
    shows = rows_of(records["record_name"], *SHOWS) & np.asarray(records["problem"].is_null())
    for row, time, does_show in _each(facts, records, records["log_time"], pa.array(shows)):
        row["changed"] = _best(max, row["changed"], time)
        row["began"] = _best(min, row["began"], time if does_show else None)
    changes = memberships(group_events).sort_by("log_offset")
    for row, is_empty in _each(facts, changes, changes["is_empty"]):
        row["was_empty"] = is_empty
    rebalances = events.filter(pc.equal(events["event"], "rebalanced"))
    for row, time in _each(facts, rebalances, rebalances["event_time"]):
        row["rebalanced"].append(time)
    for row in facts.values():
        row["rebalanced"] = _recent(row["rebalanced"])
    found = pa.Table.from_pylist([*facts.values()], _FACTS).cast(GROUP_FACTS.arrow)
    return together(then.filter(pa.array(~is_touched)), found)


def _each(
    facts: dict[tuple[Any, ...], dict[str, Any]], rows: pa.Table, *columns: pa.ChunkedArray | pa.Array
) -> Iterator[tuple[Any, ...]]:
    """For each row, the facts of its group (new, if it has none), and the columns' values; times are in µs."""
    told = [values(column.cast(_IN_US.get(column.type, column.type))) for column in columns]
    for group, *own in zip(zip(*(values(rows[name]) for name in GROUPS.key), strict=True), *told, strict=True):
        if group not in facts:
            facts[group] = dict(zip(GROUP_FACTS.names, (*group, None, None, None, []), strict=True))
        yield (facts[group], *own)


def _best(choose: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    """The earlier or the later time, if both are known."""
    return other if one is None else one if other is None else choose(one, other)


def _recent(rebalances: list[int | None]) -> list[int]:
    """The rebalances in the REBALANCES_MS before the last one, in order."""
    known = sorted(time for time in rebalances if time is not None)
    return [time for time in known if time >= known[-1] - REBALANCES_MS * 1000]
