"""What Spark 4.1 lacks of pyspark.sql.streaming.datasource."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ReadAllAvailable", "ReadLimit", "ReadMaxRows", "SupportsTriggerAvailableNow"]


class SupportsTriggerAvailableNow:
    """Spark 4.1 reads with such a trigger all that is there in one batch."""


class ReadLimit:
    """How much a batch may have."""


class ReadAllAvailable(ReadLimit):
    """Everything."""


@dataclass(frozen=True)
class ReadMaxRows(ReadLimit):
    """So many records at most."""

    max_rows: int
