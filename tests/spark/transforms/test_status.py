"""Status on traces of commits, each a group of its own: what the rules judge is told from them. The cases of the rules
are in tests/rules.
"""

from typing import Any

from tests.spark.transforms.traces import (
    HOUR,
    MINUTE,
    Trace,
    at,
    facts_of,
    lag_row,
    listed,
    moves_of,
    paces_of,
    rewinds_of,
    seconds_of,
    table_of,
)

from groupkeeper.pipeline.present.status import status
from groupkeeper.pipeline.tables import GROUP_EVENTS, GROUP_RECORDS, GROUPS, LAG, REWINDS, STATUS

Verdict = tuple[str, float | None]


class Cases:
    """A trace of each case, what its lag is when the status is asked for, and what must come out."""

    def __init__(self) -> None:
        self.trace = Trace()
        self.lags: list[dict[str, Any]] = []
        self.wanted: dict[str, Verdict] = {}
        self.events: list[dict[str, Any]] = []

    def reads(self, name: str, until: float, every: float, per_commit: int = 10) -> None:
        """A group that commits regularly from the beginning on, and moves on each time."""
        self.trace.group_id = name
        for number in range(int(until / every) + 1):
            self.trace.commit(number * every, number * per_commit)

    def rebalances(self, name: str, begin: float, every: float, count: int) -> None:
        """So many completed rebalances of a group."""
        for number in range(count):
            self.events.append(
                {"cluster": "c", "group_id": name, "event": "rebalanced", "event_time": at(begin + number * every)}
            )

    def asked(
        self, seconds: float, committed: int, end: int, waits_s: float | None, committed_at: float, wanted: Verdict,
        **columns: Any,
    ) -> None:  # fmt: skip
        """At that time there are records up to `end`, the oldest of which has waited for so long."""
        name = self.trace.group_id
        waits_ms = None if waits_s is None else int(waits_s * 1000)
        self.lags.append(lag_row(seconds, committed, end, waits_ms, committed_at, group_id=name, **columns))
        self.wanted[name] = wanted


def slow_topics(cases: Cases) -> None:
    """Records that a transaction has aborted, or may abort, wait for nobody."""
    last, now = 5 * HOUR, 8 * HOUR
    for name, stable, committed_s, wanted in (
        ("slow topic, aborted records only", 9, 0, ("ok", None)),
        ("slow topic, one just now behind aborted ones", 9, 20, ("ok", None)),
        ("slow topic, one for long behind aborted ones", 9, 2 * HOUR, ("lagging", now - 2 * HOUR + 5 * MINUTE)),
        ("slow topic, one just now, then an open transaction", 7, 20, ("ok", None)),
        ("slow topic, records of an open transaction", 5, 0, ("stopped", last)),
    ):
        cases.reads(name, last, HOUR, per_commit=1)
        cases.asked(now, 5, 9, 3 * HOUR, last, wanted, committed_lag_ms=committed_s * 1000, last_stable_offset=stable)


def commit_intervals(cases: Cases) -> None:
    """Burrow's window is ten commits: a second for a fast one, which a pause makes "stopped"; hours for a slow one."""
    cases.reads("fast commits, a minute's pause", 5, 0.1)
    cases.asked(65, 500, 900, 60, 5, ("ok", None))
    cases.reads("fast commits, dead", 5, 0.1)
    cases.asked(5 + 11 * MINUTE, 500, 900, 11 * MINUTE, 5, ("stopped", 5))
    cases.reads("a commit an hour", 10 * HOUR, HOUR)
    now = 10.5 * HOUR
    cases.asked(now, 100, 900, 30 * MINUTE, 10 * HOUR, ("lagging", now - 25 * MINUTE))
    cases.reads("a commit an hour, dead", 10 * HOUR, HOUR)
    cases.asked(14 * HOUR, 100, 900, 4 * HOUR, 10 * HOUR, ("stopped", 10 * HOUR))


def getting_nowhere(cases: Cases) -> None:
    now = 605 + 20 * MINUTE
    for name, waits_s, wanted in (
        ("the same offset again and again", 20 * MINUTE, ("stalled", 605)),
        ("the same offset, as there was nothing to read", 60, ("ok", None)),
    ):
        cases.reads(name, 600, 5)
        for second in range(605, now, 5):
            cases.trace.commit(second, 1200)
        cases.asked(now, 1200, 1300, waits_s, now - 5, wanted)
    cases.trace.group_id = "the same offset for more than a day"
    for minute in range(0, 26 * 60, 30):
        cases.trace.commit(minute * MINUTE, 7)
    cases.asked(25.9 * HOUR, 7, 9, 25 * HOUR, 25.5 * HOUR, ("stalled", 0.9 * HOUR))


def behind(cases: Cases) -> None:
    cases.reads("behind, and moving", 600, 5)
    cases.asked(601, 1200, 9000, 8 * MINUTE, 600, ("lagging", 601 - 3 * MINUTE))
    cases.reads("records of unknown age", 600, 5)
    cases.asked(601, 1200, 9000, None, 600, ("unknown", None), lag_basis="unknown")
    cases.reads("a partition without leader", 600, 5)
    cases.asked(601, 1200, 0, None, 600, ("unknown", None), lag=None, lag_basis="unknown")


def put_back(cases: Cases) -> None:
    cases.reads("put back, on its way", 600, 5)
    cases.trace.commit(605, 100)
    cases.trace.commit(610, 200)
    cases.asked(611, 200, 1200, HOUR, 610, ("rewound", 605))
    cases.reads("put back, and there again", 600, 5)
    cases.trace.commit(605, 100)
    cases.trace.commit(610, 1200)
    cases.asked(621, 1200, 1210, 1, 610, ("ok", None))


def never_there(cases: Cases) -> None:
    cases.reads("put beyond the log by mistake, and back", 600, 5)
    cases.trace.commit(605, 50_000)
    cases.trace.commit(610, 1200)
    cases.asked(621, 1200, 1210, 1, 610, ("ok", None))


def several_partitions(cases: Cases) -> None:
    """A group is as its worst partition."""
    cases.reads("one of two is dead", 600, 5)
    cases.asked(600 + HOUR, 1200, 1200, 0, 600, ("ok", None), partition=1)
    cases.asked(600 + HOUR, 1200, 9000, HOUR, 600, ("stopped", 600))
    cases.reads("both of two are dead", 600, 5)
    cases.asked(600 + 2 * HOUR, 1200, 90_000, HOUR, 600, ("stopped", 600), partition=1)
    cases.asked(600 + 2 * HOUR, 1200, 9000, 2 * HOUR, 600, ("stopped", 600))


def unusual_offsets(cases: Cases) -> None:
    cases.reads("its latest commits are not known", 600, 5)
    cases.asked(
        HOUR, 1200, 9000, None, 600, ("unknown", None), lag=None, problem="the latest commits are not known: so"
    )
    cases.reads("begins at the begin, wherever that is", 600, 5)
    cases.asked(601, -1, 9000, 60, 600, ("ok", None), log_start_offset=6000)
    cases.trace.group_id = "one commit, of which records are gone"
    cases.trace.commit(590, 1000)
    cases.asked(600, 1000, 9000, 540, 590, ("losing", None), log_start_offset=6000)


def test_status() -> None:
    cases = Cases()
    for add in (
        slow_topics, commit_intervals, getting_nowhere, behind, put_back, never_there, several_partitions,
        unusual_offsets,
    ):  # fmt: skip
        add(cases)
    history = cases.trace.commits()
    back = rewinds_of(moves_of(history, table_of(GROUP_EVENTS, [])))
    facts = facts_of(table_of(GROUP_RECORDS, []), table_of(GROUP_EVENTS, cases.events))
    groups = table_of(
        GROUPS, [{"cluster": "c", "group_id": "behind, and moving", "group_type": "classic", "members": 1}]
    )
    found = status(paces_of(history), table_of(LAG, cases.lags), back, groups, facts)
    assert found.column_names == STATUS.names
    rows = listed(found)
    verdict = {row.group_id: (row.status, seconds_of(row.since_time)) for row in rows if row.partition == 0}
    assert verdict == cases.wanted
    of_groups = {row.group_id: (row.status, seconds_of(row.since_time)) for row in rows if row.topic is None}
    assert of_groups == cases.wanted
    rule = {row.group_id: row.rule for row in rows if row.partition == 0}
    (worst,) = [row.rule for row in rows if row.group_id == "both of two are dead" and row.topic is None]
    assert worst.startswith("t-0: the next record has waited for 2 h")
    assert rule["its latest commits are not known"] == "the latest commits are not known: so"
    assert rule["put back, on its way"].endswith("; the group had been at offset 1200, and is at 200")
    assert rule["fast commits, a minute's pause"].endswith("has waited for 1 min")


def test_a_group_that_rebalances_all_the_time() -> None:
    cases = Cases()
    now = 50 * MINUTE
    for name, rebalances, begin, every, waits_s in (
        ("all the time", 46, 40 * MINUTE, 13, 0),
        ("a rolling restart", 9, 40 * MINUTE, 60, 0),
        ("earlier", 100, 0, 1, 0),
        ("and lags", 20, 45 * MINUTE, 1, 8 * MINUTE),
        ("without offsets", 20, 45 * MINUTE, 1, None),
    ):
        cases.rebalances(name, begin, every, rebalances)
        if waits_s is not None:
            cases.reads(name, now, 60)
            cases.asked(now, 500, 500 + waits_s, waits_s, now, ("", None))
    history, no_moves = cases.trace.commits(), table_of(REWINDS, [])
    facts = facts_of(table_of(GROUP_RECORDS, []), table_of(GROUP_EVENTS, cases.events))
    rows = listed(status(paces_of(history), table_of(LAG, cases.lags), no_moves, table_of(GROUPS, []), facts))
    assert {row.group_id: row.status for row in rows if row.topic} == {
        "all the time": "ok", "a rolling restart": "ok", "earlier": "ok", "and lags": "lagging",
    }  # fmt: skip
    of_groups = {row.group_id: row for row in rows if row.topic is None}
    assert {name: (row.status, seconds_of(row.since_time)) for name, row in of_groups.items()} == {
        "all the time": ("unstable", 40 * MINUTE), "a rolling restart": ("ok", None), "earlier": ("ok", None),
        "and lags": ("lagging", 47 * MINUTE), "without offsets": ("unstable", 45 * MINUTE),
    }  # fmt: skip
    assert of_groups["all the time"].rule == "46 rebalances in the last 10 min"
    assert of_groups["without offsets"].rule == "20 rebalances in the last 10 min"
    assert of_groups["and lags"].rule.endswith("8 min; 20 rebalances in the last 10 min")
