"""Status of readers whose truth is known: commit interval x production x fate x time, thousands at once.

Each case is simulated record by record. What must come out is said of the reader, not of the rules: whoever reads what
is there is never called stopped, however seldom the topic gets a record or the reader commits; whoever is dead while a
record waits is, from the moment on from which that can be said.
"""

from itertools import product
from typing import Any, NamedTuple

import pytest
from tests.spark.transforms.traces import (
    HOUR,
    MINUTE,
    Trace,
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
from groupkeeper.pipeline.tables import GROUP_EVENTS, GROUP_RECORDS, GROUPS, LAG
from groupkeeper.rules.status import MOST_PATIENCE_MS, PATIENCE_MS

PRODUCED_EVERY = (10, MINUTE, 20 * MINUTE, HOUR, 4 * HOUR)
COMMITS_EVERY = (20, MINUTE, 15 * MINUTE, HOUR)
FATES = ("reads", "dies", "hangs", "dies, and nothing is produced since", "is put back")
FOR = (30, 9 * MINUTE, 45 * MINUTE, 4 * HOUR)
AT_LEAST, AT_MOST = PATIENCE_MS / 1000, MOST_PATIENCE_MS / 1000


class Case(NamedTuple):
    """A reader that did well until `turn`, and is looked at `later` seconds after that."""

    produced_every: int
    commits_every: int
    commits_always: bool
    fate: str
    later: int

    @property
    def turn(self) -> int:
        """Far enough in for every interval to have been seen some times, and not at a round number of them."""
        return 6 * max(self.produced_every, self.commits_every) + 7

    @property
    def now(self) -> int:
        return self.turn + self.later

    def produced_until(self, seconds: float) -> int:
        """Records are there from 0 on, one every so often."""
        if self.fate.endswith("since"):
            seconds = min(seconds, self.commits_every * (self.turn // self.commits_every))
        return int(seconds // self.produced_every) + 1

    def commits(self) -> list[tuple[int, int]]:
        """When, and which offset."""
        found: list[tuple[int, int]] = []
        for seconds in range(0, self.now + 1, self.commits_every):
            offset = self.produced_until(seconds)
            if seconds > self.turn:
                if self.fate.startswith("dies"):
                    break
                if self.fate == "hangs":
                    offset = found[-1][1]
                elif self.fate == "is put back":  # to the beginning, and a record takes it some time
                    offset = min(offset, int((seconds - self.turn) / min(1.1 * self.produced_every, 20 * MINUTE)))
            is_recent = seconds > self.turn - 100 * self.commits_every  # earlier ones of the same offset would be many
            is_repeated = is_recent and (self.commits_always or self.fate == "hangs")
            if is_repeated or not found or found[-1][1] != offset:
                found.append((seconds, offset))
        return found


def is_right(case: Case, verdict: str, since: float | None, waits: float | None) -> bool:
    commits = case.commits()
    last = commits[-1][0]
    if waits is None:
        return (verdict, since) == ("ok", None)
    began = max(last, case.now - waits)
    if case.fate in ("reads", "is put back"):
        if verdict == "rewound":
            return case.fate == "is put back" and since is not None and since > case.turn
        return verdict == ("lagging" if waits >= MINUTE * 5 else "ok")
    stood_still = case.now - began
    if case.fate == "hangs":
        began = max(next(s for s, offset in commits if offset == commits[-1][1]), case.now - waits)
        stood_still = case.now - began
    name = "stalled" if case.fate == "hangs" else "stopped"
    if stood_still >= AT_MOST:
        return (verdict, since) == (name, began)
    if stood_still < AT_LEAST:
        return verdict in ("ok", "lagging")
    return verdict in ("ok", "lagging", name)


@pytest.mark.long
def test_status_of_readers_whose_truth_is_known() -> None:
    cases = {
        f"{number}": Case(*settings)
        for number, settings in enumerate(product(PRODUCED_EVERY, COMMITS_EVERY, (False, True), FATES, FOR))
        if settings[0] / settings[1] < 1000
    }
    trace = Trace()
    lags: list[dict[str, Any]] = []
    waits: dict[str, float | None] = {}
    for name, case in cases.items():
        commits = case.commits()
        for seconds, offset in commits:
            trace.commit(seconds, offset, group_id=name)
        at, end = commits[-1][1], case.produced_until(case.now)
        waits[name] = case.now - at * case.produced_every if at < end else None
        waits_ms = 0 if waits[name] is None else int((waits[name] or 0) * 1000)
        lags.append(lag_row(case.now, at, end, waits_ms, commits[-1][0], group_id=name))
    history = trace.commits()
    no_events = table_of(GROUP_EVENTS, [])
    facts = facts_of(table_of(GROUP_RECORDS, []), no_events)
    back = rewinds_of(moves_of(history, no_events))
    found = status(paces_of(history), table_of(LAG, lags), back, table_of(GROUPS, []), facts)
    rows = {row.group_id: row for row in listed(found) if row.topic is not None}
    assert set(rows) == set(cases)
    wrong = [
        (case, rows[name].status, seconds_of(rows[name].since_time), waits[name], rows[name].rule)
        for name, case in cases.items()
        if not is_right(case, rows[name].status, seconds_of(rows[name].since_time), waits[name])
    ]
    assert not wrong, "\n".join(map(str, [len(wrong), *wrong[:20]]))
    assert {row.status for row in rows.values()} == {"ok", "lagging", "stopped", "stalled", "rewound"}
