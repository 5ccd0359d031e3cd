"""The measures of a group that `check` and alert rules compare with limits, and when a value breaks its limit."""

from __future__ import annotations

from enum import StrEnum


class Measure(StrEnum):
    """A measure of a group that a limit can apply to. Times are in ms.

    `idle`: for how long a group has committed nothing in a partition where a record waits. `rebalances`: in the
    period that the rule names. `dead_letters`: records in the dead-letter queue of a share group. `state`: Kafka's;
    `status`: that of groupkeeper.rules.status.
    """

    LAG = "lag"
    TIME_LAG = "time_lag"
    UNCOMMITTED = "uncommitted"
    LOST = "lost"
    MARGIN = "retention_margin"
    IDLE = "idle"
    REBALANCES = "rebalances"
    DEAD_LETTERS = "dead_letters"
    MEMBERS = "members"
    STATE = "state"
    STATUS = "status"


TIMES = frozenset({Measure.TIME_LAG, Measure.MARGIN, Measure.IDLE})
LOWEST = frozenset({Measure.MARGIN, Measure.MEMBERS})
"""Measures with a lower limit: smaller values exceed it."""


class Verdict(StrEnum):
    """The result of comparing a group with a limit. `unknown`: a value that decides the result is not known."""

    OK = "ok"
    BROKEN = "broken"
    UNKNOWN = "unknown"


def verdict(measure: Measure, value: int | None, limit: int, *, is_whole: bool) -> Verdict:
    """Compares a value with its limit. `is_whole`: all parts of the value are known. If a part of a sum is unknown,
    the verdict is broken when the known parts break the limit, else unknown, never ok.
    """
    if value is not None and (value < limit if measure in LOWEST else value > limit):
        return Verdict.BROKEN
    return Verdict.OK if is_whole else Verdict.UNKNOWN


def verdict_of_status(status: str, bad: frozenset[str]) -> Verdict:
    """`BROKEN` if the status is among `bad`, `UNKNOWN` if it is unknown, else `OK`."""
    if status in bad:
        return Verdict.BROKEN
    return Verdict.UNKNOWN if status == "unknown" else Verdict.OK
