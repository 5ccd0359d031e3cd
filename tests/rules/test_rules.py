"""The cases against the rules themselves, and the rules that have no verdict."""

import importlib
import inspect
import pkgutil
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from tests.rules.cases import Case, cases

from groupkeeper import rules
from groupkeeper.rules import expiry, progress, status
from groupkeeper.rules.causes import no_members
from groupkeeper.rules.limits import Measure, Verdict, verdict, verdict_of_status
from groupkeeper.rules.status import RANKS, Facts, Status, group_status, not_judged, partition_status, reason
from groupkeeper.rules.words import (
    ago,
    amount,
    capitalized,
    counted,
    days,
    duration,
    length,
    moment,
    name,
    number,
    printable,
    rate,
    several,
    waiting,
    within,
)
from groupkeeper.rules.words import reason as shortened

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


def test_each_rule_is_shown_here() -> None:
    """Not by the callers' tests: a rule holds for all of them."""
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))
    modules = [
        importlib.import_module(f"{rules.__name__}.{each.name}") for each in pkgutil.iter_modules(rules.__path__)
    ]
    names = {
        name
        for module in modules
        for name, value in inspect.getmembers(module, inspect.isfunction)
        if value.__module__ == module.__name__ and not name.startswith("_")
    }
    silent = sorted(name for name in names if not re.search(rf"\b{name}\b", tests))
    assert not silent, f"show in tests/rules what these say: {', '.join(silent)}"


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_status(case: Case) -> None:
    worst = max((partition_status(each) for each in case.partitions), key=RANKS.__getitem__)
    assert group_status(worst, case.partitions[0].members, case.lately) == case.verdict


def test_each_status_has_a_case_and_a_reason() -> None:
    told = {status: reason(each, status) for case in cases() for each in case.partitions
            for status in [partition_status(each)]}  # fmt: skip
    assert set(told) == set(Status) - {Status.UNSTABLE}
    assert all(told.values())
    stopped = Facts(10, 5, 0, is_waiting=True, waits_ms=33 * MINUTE_MS, still_ms=40 * MINUTE_MS, members=0)
    assert reason(stopped, Status.STOPPED) == (
        "the next record has waited for 33 min, and the committed offset has not moved for 40 min; "
        "the group has no members"
    )


def test_the_rungs_that_could_not_be_judged_say_what_is_missing() -> None:
    assert not_judged(Facts(10, 5)) == {
        Status.ABANDONED: "whether a member reads the topic is not known",
        Status.STALLED: "whether the group commits the same offset is not known",
        Status.STOPPED: "since when the committed offset stands is not known",
        Status.LAGGING: "since when the next record waits is not known",
        Status.LOSING: "where the log begins is not known",
    }
    assert not_judged(Facts(10, 5, 0, waits_ms=0, still_ms=0, quiet_ms=0, is_read=True)) == {}


def test_how_long_a_group_may_stand_still() -> None:
    usual = {None: 10 * MINUTE_MS, 5 * MINUTE_MS: 15 * MINUTE_MS, 2 * HOUR_MS: 3 * HOUR_MS}
    assert {gap: status.patience_ms(gap, 1) for gap in usual} == usual
    assert status.patience_ms(2 * HOUR_MS, 0) == MINUTE_MS
    assert status.patience_ms(2 * HOUR_MS, 0, is_simple=True) == 3 * HOUR_MS
    assert [status.is_abandoned(0, idle_ms) for idle_ms in (None, 24 * HOUR_MS - 1, 24 * HOUR_MS)] == [
        False, False, True
    ]  # fmt: skip
    assert not status.is_abandoned(None, 24 * HOUR_MS)


def test_partitions_are_well_without_a_look_at_each() -> None:
    assert status.are_well(MINUTE_MS - 1, MINUTE_MS, 1, None)
    assert not status.are_well(MINUTE_MS, None, 1, None)  # a group without members would have stopped
    assert not status.are_well(5, 4, 1, None)  # half of the time until retention has passed
    assert not status.are_well(0, None, 0, 24 * HOUR_MS)


def test_since_when_a_status_holds() -> None:
    facts = Facts(10, 5, 0, waits_ms=33 * MINUTE_MS, still_ms=40 * MINUTE_MS, quiet_ms=5 * MINUTE_MS, members=1)
    held = {each: status.status_age_ms(facts, each) for each in (Status.STALLED, Status.STOPPED, Status.OK)}
    assert held == {Status.STALLED: 33 * MINUTE_MS, Status.STOPPED: 5 * MINUTE_MS, Status.OK: None}
    assert status.status_age_ms(facts, Status.LAGGING) == 33 * MINUTE_MS - status.LAGGING_MS
    assert status.status_age_ms(facts._replace(members=0, idle_ms=25 * HOUR_MS), Status.ABANDONED) == 25 * HOUR_MS


def test_topics_that_members_read() -> None:
    member = status.Subscription(("a",), has_pattern=False, assigned=("b",))
    assert status.topics_read([member]) == frozenset("ab")
    assert status.topics_read([]) is None
    assert status.topics_read([member, member._replace(has_pattern=True)]) is None
    assert status.topics_read([member, member._replace(topics=None)]) is None


@pytest.mark.parametrize(
    ("gaps", "usual"),
    [
        ([], None),
        ([60] * 2, None),
        ([60] * 3, 60),
        ([1] * 20 * 5 + [55] * 5, 55),  # a batch of many commits each hour
        ([1] * 3600 + [40, 40], 1),  # two outages
        ([10, 20, 30], 10),
    ],
)
def test_the_usual_gap_is_that_in_which_half_of_the_time_passes(gaps: list[int], usual: int | None) -> None:
    assert progress.usual_gap_ms(gaps) == usual


def test_lag_and_what_can_be_read() -> None:
    assert [progress.lag(10, end) for end in (None, 5, 10, 110)] == [None, 0, 0, 100]
    assert [progress.lost(10, start) for start in (None, 5, 30)] == [None, 0, 20]
    assert [progress.readable(*each) for each in ((100, 20), (90, 90), (0, 5), (None, 0), (5, None))] == [
        80, 0, 0, None, None
    ]  # fmt: skip
    assert progress.time_lag_ms(100, 90) == 0
    assert progress.retention_margin_ms(100, 50, 160) == -10
    assert [progress.retention_margin_ms(100, kept, 160) for kept in (None, -1)] == [None, None]


def test_a_trend_compares_rates_not_lags() -> None:
    assert progress.trend(1000, 900, 1_000_000) == "growing"
    assert progress.trend(1000, 951, 10) == "steady"
    assert progress.trend(0, 900, 10) == "shrinking"
    assert progress.trend(0, 900, 0) == "steady"
    assert progress.catch_up_ms(1000, 100, 200) == 10_000
    assert progress.catch_up_ms(1000, 100, 100) is None
    assert progress.catch_up_ms(0, 100, 0) == 0


def test_when_retention_gets_ahead_of_a_group() -> None:
    assert progress.overtaken_ms(-5, 10, 1, 2) == -5  # now
    assert progress.overtaken_ms(1000, 10, 0, 0) == 1000  # it reads nothing
    assert progress.overtaken_ms(1000, 10, 0, 5) == 1000  # it needs 2 s
    assert progress.overtaken_ms(1000, 10, 0, 20) is None
    assert progress.overtaken_ms(1000, 10, 100, 50) == 2000  # twice as much arrives
    assert progress.overtaken_ms(1000, 10, 100, 99) is None  # steady


def test_when_offsets_expire() -> None:
    # G: a commit's own time wins; else its age counts from the commit, or since a classic group has been empty.
    assert expiry.expires_ms(None, 100, 7) == 107
    assert expiry.expires_ms(None, 100, 7, 200) == 207
    assert expiry.expires_ms(50, 100, 7, 200) == 50
    assert expiry.do_offsets_age(has_members=False, is_settled=False, are_topics_known=False)
    assert not expiry.do_offsets_age(has_members=True, is_settled=False, are_topics_known=True)
    assert not expiry.do_offsets_age(has_members=True, is_settled=True, are_topics_known=False)
    assert expiry.emptied_ms(has_protocol=True, has_members=False, state_since_ms=5) == 5
    assert expiry.emptied_ms(has_protocol=False, has_members=False, state_since_ms=5) is None
    assert expiry.emptied_ms(has_protocol=True, has_members=True, state_since_ms=5) is None
    assert expiry.emptied_ms(has_protocol=True, has_members=False, state_since_ms=-1) is None


def test_what_is_unknown_keeps_no_limit() -> None:
    assert verdict(Measure.LAG, 10, 9, is_whole=False) is Verdict.BROKEN
    assert verdict(Measure.LAG, 9, 9, is_whole=False) is Verdict.UNKNOWN
    assert verdict(Measure.LAG, 9, 9, is_whole=True) is Verdict.OK
    assert verdict(Measure.MARGIN, 9, 10, is_whole=True) is Verdict.BROKEN
    assert verdict(Measure.MARGIN, None, 10, is_whole=True) is Verdict.OK  # nothing waits
    bad = frozenset({"stopped"})
    assert [verdict_of_status(each, bad) for each in ("stopped", "unknown", "lagging")] == ["broken", "unknown", "ok"]
    assert verdict_of_status("unknown", frozenset({"unknown"})) is Verdict.BROKEN


def test_words() -> None:
    assert [number(each) for each in (None, 1_234_567)] == ["—", "1,234,567"]
    assert [counted(each, "group") for each in (0, 1, 1234)] == ["0 groups", "1 group", "1,234 groups"]
    assert [amount(each) for each in (None, 950, 12_340, 999_600, 7 * 10**9)] == ["—", "950", "12.3 k", "1 M", "7 G"]
    assert [rate(each) for each in (0.4, 12_300)] == ["0.4/s", "12.3 k/s"]
    texts = {0: "0s", 999: "0s", 61_000: "1m1s", 3_600_000: "1h", 90_061_000: "1d1h", -5_000: "-5s"}
    assert {ms: length(ms) for ms in texts} == texts
    assert [duration(each) for each in (None, 0, 500, 185_000, 7_800_000, 350_000_000)] == [
        "—", "0 s", "under 1 s", "3 min 5 s", "2 h 10 min", "4 d 1 h"
    ]  # fmt: skip
    assert [ago(each) for each in (-1, 185_000)] == ["0 s ago", "3 min 5 s ago"]
    assert [days(each) for each in (None, 3.51, 12.2)] == ["—", "3.5 d", "12 d"]
    east = datetime(1970, 1, 1, 2, 0, 1, 999_999, timezone(timedelta(hours=2)))
    assert [moment(each) for each in (None, 1_000, east)] == ["—", "1970-01-01 00:00:01", "1970-01-01 00:00:01"]
    assert (capitalized("a Group"), capitalized("")) == ("A Group", "")
    assert [waiting(each, "record") for each in (1, 2)] == ["1 record waits", "2 records wait"]
    assert (several("ab", 2), several("abc" * 1000, 2)) == ("a, b", "a, b and 2,998 more")
    assert [within(each) for each in (-1, 0, 185_000)] == ["at any moment", "at any moment", "in 3 min 5 s"]
    assert no_members(2).startswith("the group has no members, and 2 records wait: ")


def test_names_of_strangers() -> None:
    assert [name(each) for each in (None, "", "orders", "a\x1b\u202eb")] == ["—", "(empty)", "orders", r"a\x1b\u202eb"]
    assert name("a" * 100) == f"{'a' * 70}…{'a' * 20} (100 characters)"
    assert shortened("a" * 100) == "a" * 100
    assert printable("\ud800ü\n") == r"\ud800ü\n"
