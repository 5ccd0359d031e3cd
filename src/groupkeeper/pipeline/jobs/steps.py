"""Every table that is not history, and what it is made of."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from pyspark.sql import DataFrame

from groupkeeper.pipeline.jobs.freshness import freshness
from groupkeeper.pipeline.jobs.ledger import NextOffsets
from groupkeeper.pipeline.jobs.log_offsets import Clusters, log_offsets
from groupkeeper.pipeline.kafka.retention import Retentions
from groupkeeper.pipeline.tables import (
    CURRENT_OFFSETS,
    FRESHNESS,
    GROUP_EVENTS,
    GROUPS,
    LAG,
    LOG_OFFSETS,
    MEMBERS,
    RATES,
    REWINDS,
    STALE,
    STATUS,
    Table,
)
from groupkeeper.pipeline.transforms.current_offsets import current_offsets
from groupkeeper.pipeline.transforms.group_events import group_events
from groupkeeper.pipeline.transforms.groups import groups
from groupkeeper.pipeline.transforms.lag import lag
from groupkeeper.pipeline.transforms.members import members
from groupkeeper.pipeline.transforms.rates import rates
from groupkeeper.pipeline.transforms.rewinds import rewinds
from groupkeeper.pipeline.transforms.stale import StaleLimits, stale
from groupkeeper.pipeline.transforms.status import status

__all__ = ["STEPS", "Given", "Step"]

Tables = Mapping[str, DataFrame]


class Given(NamedTuple):
    """What is known beside the tables: the clusters, what they were at the instant of which the tables are, and how
    long they keep offsets. `read_to`: up to where the history is that the tables are made of.
    """

    clusters: Clusters
    retentions: Retentions
    read_to: NextOffsets = MappingProxyType({})

    @property
    def now_ms(self) -> int:
        """The instant where one is needed for all clusters."""
        measured = [each.measured_ms for each in self.clusters.instants.values()]
        return max(measured, default=time.time_ns() // 1_000_000)


class Step(NamedTuple):
    """A table and how it is made of the history, and of the tables of steps before it."""

    table: Table
    make: Callable[[Tables, Given], DataFrame]


STEPS = (
    Step(CURRENT_OFFSETS, lambda made, _: current_offsets(made["commits"])),
    Step(GROUP_EVENTS, lambda made, _: group_events(made["group_records"])),
    Step(LOG_OFFSETS, lambda made, given: log_offsets(made["current_offsets"], given.clusters)),
    Step(FRESHNESS, lambda made, given: freshness(made["commits"].sparkSession, given.read_to, given.clusters)),
    Step(MEMBERS, lambda made, _: members(made["group_records"])),
    Step(GROUPS, lambda made, _: groups(made["group_records"], made["group_events"], made["current_offsets"])),
    Step(RATES, lambda made, _: rates(made["commits"], made["group_events"])),
    Step(LAG, lambda made, _: _lag(made)),
    Step(REWINDS, lambda made, _: rewinds(made["commits"], made["group_events"], made["log_offsets"])),
    Step(STALE, lambda made, given: _stale(made, given)),
    Step(STATUS, lambda made, _: _status(made)),
)
"""In an order in which each has what it needs; a new table is a line here."""


def _lag(made: Tables) -> DataFrame:
    return lag(made["current_offsets"], made["log_offsets"], made["commits"], made["freshness"])


def _status(made: Tables) -> DataFrame:
    return status(made["commits"], made["lag"], made["rewinds"], made["groups"], made["group_events"])


def _stale(made: Tables, given: Given) -> DataFrame:
    return stale(
        made["current_offsets"],
        made["log_offsets"],
        made["group_records"],
        made["groups"],
        StaleLimits(given.now_ms, retentions=given.retentions),
    )
