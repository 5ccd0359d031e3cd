"""Each case through the pipeline's tables: the status table says what the rules say."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from tests.rules.cases import Case, cases

from groupkeeper.pipeline.present.status import status
from groupkeeper.pipeline.tables import GROUPS, LAG, LOG_OFFSETS, MEMBERS, REWINDS, Table
from groupkeeper.pipeline.tables.state import GROUP_FACTS, PACES
from groupkeeper.rules.status import Facts, partition_status, reason

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GROUP = {"cluster": "c", "group_id": "g"}


def can_be(case: Case) -> bool:
    """Whether tables can have these facts: of a group without members they know the partitions with commits only."""
    return all(
        facts.committed_offset is not None or facts.lag is not None or facts.members for facts in case.partitions
    )


def ago(ms: int | None) -> datetime | None:
    return None if ms is None else NOW - timedelta(milliseconds=ms)


def place(number: int, facts: Facts) -> dict[str, Any]:
    return GROUP | {"topic": f"{'left' if facts.is_read is False else 'topic'}-{number}", "partition": 0}


def lag_of(number: int, facts: Facts) -> dict[str, Any]:
    committed = facts.committed_offset or 0
    end = None if facts.lag is None else committed - 1 if facts.is_beyond else committed + facts.lag
    end = end if facts.offset_before_rewind is None else facts.offset_before_rewind
    return place(number, facts) | {
        "committed_offset": committed, "log_start_offset": committed + (facts.lost or 0), "last_stable_offset": end,
        "log_end_offset": end, "lag": facts.lag, "lag_ms": facts.waits_ms, "committed_lag_ms": facts.waits_ms,
        "commit_time": ago(facts.quiet_ms), "measured_time": NOW, "is_waiting": facts.is_waiting,
        "retention_margin_ms": facts.margin_ms,
    }  # fmt: skip


def tables_of(case: Case) -> Mapping[str, tuple[Table, list[dict[str, Any]]]]:
    first = case.partitions[0]
    committed = [(number, facts) for number, facts in enumerate(case.partitions) if facts.committed_offset is not None]
    lacking = [(number, facts) for number, facts in enumerate(case.partitions) if facts.committed_offset is None]
    read = [place(number, facts)["topic"] for number, facts in enumerate(case.partitions) if facts.is_read is not False]
    people = [
        GROUP | {"member_id": f"m-{one}", "group_type": "consumer", "subscribed_topics": read or ["another"],
                 "assigned": [{"topic": place(*each)["topic"], "partitions": [0]} for each in lacking]}
        for one in range(first.members or 0)
    ]  # fmt: skip
    group = {
        "group_type": "simple" if first.is_simple else "classic",
        "group_state": "Stable",
        "members": first.members,
    }
    rewinds = [place(*each) | {"direction": "back", "from_offset": each[1].offset_before_rewind, "rewind_time": NOW}
               for each in committed if each[1].offset_before_rewind is not None]  # fmt: skip
    return {
        "paces": (PACES, [place(*each) | {"moved_time": ago(each[1].still_ms),
                                          "commit_gaps": [each[1].usual_gap_ms] * 3 if each[1].usual_gap_ms else []}
                          for each in committed]),
        "lag": (LAG, [lag_of(*each) for each in committed]),
        "rewinds": (REWINDS, rewinds),
        "groups": (GROUPS, [GROUP | group | {"last_commit_time": ago(first.idle_ms)}]),
        "facts": (GROUP_FACTS, [GROUP | {"rebalanced": [NOW] * (case.lately or 0)}]),
        "members": (MEMBERS, people),
        "log_offsets": (LOG_OFFSETS, [
            {**place(*each), "log_start_offset": 0, "log_end_offset": each[1].in_log, "is_deleted": False,
             "measured_time": NOW} for each in lacking]),
    }  # fmt: skip


@pytest.mark.parametrize("case", [case for case in cases() if can_be(case)], ids=lambda case: case.name)
def test_tables_say_the_same(case: Case) -> None:
    given = {name: pa.Table.from_pylist(rows, table.arrow) for name, (table, rows) in tables_of(case).items()}
    found = {row["topic"]: row for row in status(**given).to_pylist()}
    assert found[None]["status"] == case.verdict
    for number, facts in enumerate(case.partitions):
        if facts.committed_offset is not None:
            row, wanted = found[place(number, facts)["topic"]], partition_status(facts)
            assert (row["status"], row["rule"]) == (wanted, reason(facts, wanted))
