"""Stand-ins for classes of pyspark.sql.streaming.datasource that Spark 4.1 lacks."""

from __future__ import annotations

from dataclasses import dataclass


class SupportsTriggerAvailableNow:
    """Without effect: with this trigger, Spark 4.1 reads everything in one batch."""


class ReadLimit:
    """How much a batch may read."""


class ReadAllAvailable(ReadLimit):
    """Everything."""


@dataclass(frozen=True)
class ReadMaxRows(ReadLimit):
    """At most `max_rows` records."""

    max_rows: int
