"""The standing of a transaction: whether it will end by itself, or blocks readers until someone aborts it."""

from __future__ import annotations

from enum import StrEnum

from groupkeeper.rules.words import duration

LONGEST_MS = 15 * 60 * 1000
"""Kafka's default for `transaction.max.timeout.ms`: no coordinator leaves a transaction open for longer."""
SLACK_MS = 60 * 1000
"""How late an abort may be: coordinators check timeouts every few seconds, and then write the markers."""


class Standing(StrEnum):
    """`open`: its coordinator aborts it after its timeout, if its producer does not end it before. `late`: the
    coordinator should have aborted it. `ending`: the coordinator writes its markers. `unclaimed`: no coordinator
    reports it; it hangs, is too recent to judge, or its transactional id is hidden. `hanging`: no coordinator reports
    it, and its last record (by the producer's timestamp) is older than the longest timeout. `unknown`: not all
    coordinators replied. `ended`: no transaction is open.
    """

    OPEN = "open"
    LATE = "late"
    ENDING = "ending"
    UNCLAIMED = "unclaimed"
    HANGING = "hanging"
    UNKNOWN = "unknown"
    ENDED = "ended"


def describe_transaction(name: str, standing: Standing, open_ms: int | None, timeout_ms: int | None) -> str:
    """Describes an open transaction and how it will end, as a phrase. `timeout_ms` None: no coordinator has it."""
    after = "" if timeout_ms is None else f" after {duration(timeout_ms)}"
    ends = {
        Standing.OPEN: f"; its coordinator aborts it{after}",
        Standing.LATE: f"; its coordinator should have aborted it{after}",
        Standing.HANGING: "; no coordinator has it: nothing will end it",
    }
    return f"{name}, open for {duration(open_ms)} ({standing}){ends.get(standing, '')}"


def standing_of_known(state: str, open_ms: int | None, timeout_ms: int) -> Standing:
    """The standing of a transaction that its coordinator has. `state`: Kafka's name."""
    if state in ("PrepareCommit", "PrepareAbort", "PrepareEpochFence"):
        return Standing.ENDING
    if state != "Ongoing":
        return Standing.ENDED
    return Standing.LATE if open_ms is not None and open_ms > timeout_ms + SLACK_MS else Standing.OPEN


def standing_of_unknown(silent_ms: int | None, longest_ms: int | None = LONGEST_MS, *, is_asked: bool) -> Standing:
    """The standing of a transaction that no coordinator has. `silent_ms`: since its last record; `longest_ms`: the
    longest timeout that brokers allow; None: not known. `is_asked`: all coordinators replied.
    """
    if not is_asked:
        return Standing.UNKNOWN
    if silent_ms is None or longest_ms is None:
        return Standing.UNCLAIMED
    return Standing.HANGING if silent_ms > longest_ms else Standing.UNCLAIMED
