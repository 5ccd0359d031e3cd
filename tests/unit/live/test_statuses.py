"""How a group is doing, by how long records wait."""

import csv
import io

import pytest
from tests.rules.cases import Case, cases
from tests.unit.live.views import NODE, described, member, row, snapshot, view

from groupkeeper.client.admin.resources.types import ProducerState, TransactionDescription, TransactionState
from groupkeeper.client.admin.types import GroupState, TopicPartition
from groupkeeper.live.limits import GroupLimits, judge_group
from groupkeeper.live.model import NOTHING_WAITS, GroupView, Stood, Wait
from groupkeeper.live.statuses import judge_status
from groupkeeper.operations.groups import unread_topics
from groupkeeper.operations.lag import LagStatus
from groupkeeper.operations.transactions import OpenTransaction
from groupkeeper.protocol.errors import LeaderNotAvailable
from groupkeeper.rules.limits import Verdict
from groupkeeper.web.pages.cluster import Wish, groups_csv
from groupkeeper.web.pages.fleet import fleet_page
from groupkeeper.web.pages.group import group_page
from groupkeeper.web.series import group_samples

NOW_MS = 1_700_000_000_000
MINUTE_MS = 60_000


def shown(case: Case) -> GroupView:
    """The facts of a case as polls find them."""
    rows, waits, stood = [], [], {}
    one = case.partitions[0]
    for number, facts in enumerate(case.partitions):
        topic = f"t{number}" if facts.is_read is False else "t"
        end = None if facts.lag is None and facts.committed_offset is not None else 100
        start = end if facts.in_log == 0 else 0
        if facts.committed_offset is None and facts.in_log is None:
            start = end = None
        each = row(topic, number, facts.committed_offset, end, start or 0)
        if facts.committed_offset is not None:
            each = each._replace(lag=facts.lag, lost=facts.lost or 0 if facts.lag is not None else None)
        if facts.is_beyond:
            each = each._replace(status=LagStatus.BEYOND_LOG_END)
        elif facts.lag is None and facts.committed_offset is not None:
            each = each._replace(failure=LeaderNotAvailable(), status=LagStatus.NO_LEADER)
        rows.append(each)
        nothing = facts.lag == 0 or facts.is_waiting is False
        waits.append(NOTHING_WAITS if nothing else Wait(facts.waits_ms, margin_ms=facts.margin_ms))
        if facts.still_ms is not None:
            stood[TopicPartition(topic, number)] = Stood(facts.committed_offset or 0, NOW_MS - facts.still_ms)
    members = [member(str(number)) for number in range(one.members or 0)]
    description = described("g", *members)._replace(is_simple=one.is_simple)
    progress_ms = None if one.idle_ms is None else NOW_MS - one.idle_ms
    left = frozenset(each.topic for each, facts in zip(rows, case.partitions, strict=True) if facts.is_read is False)
    return view("g", rows, waits, description, progress_ms=progress_ms)._replace(
        stood=stood, unread=left, usual_gap_ms=one.usual_gap_ms, rebalances_lately=case.lately or 0
    )


SEEN = [case for case in cases() if case.verdict not in ("stalled", "rewound")
        and all(each.quiet_ms is None for each in case.partitions)]  # fmt: skip


@pytest.mark.parametrize("case", SEEN, ids=lambda case: case.name)
def test_each_surface_says_what_the_rules_say(case: Case) -> None:
    found = snapshot(shown(case), at_ms=NOW_MS)
    group = found.groups["g"]
    assert judge_status(group, NOW_MS).status == case.verdict
    [series] = [text for name, text in group_samples(found, group) if name == "groupkeeper_group_status"]
    assert f'status="{case.verdict}"' in series
    [of_csv] = csv.DictReader(io.StringIO(groups_csv(found, Wish())))
    assert of_csv["status"] == case.verdict
    assert f"is-{case.verdict}" in group_page(found, group, [], [], NOW_MS)
    [limited] = judge_group(group, GroupLimits(statuses=frozenset({case.verdict})), NOW_MS)
    assert (limited.verdict, limited.value) == (Verdict.BROKEN, case.verdict)
    bad = {name for name, _ in group_samples(found, group) if name == "groupkeeper_partition_status"}
    assert bool(bad) is (case.verdict in ("stopped", "losing"))


def test_a_topic_that_no_member_reads() -> None:
    reads = member("a", TopicPartition("new", 0), subscribed_topics=("new",))
    topics = frozenset({"new", "old"})
    assert unread_topics(described("g", reads), topics) == {"old"}
    assert unread_topics(described("g", reads, state=GroupState.PREPARING_REBALANCE), topics) == frozenset()
    assert unread_topics(described("g", reads, member("b")), topics) == frozenset()  # of b it is not known
    assert unread_topics(described("g", reads._replace(target_assignment=(TopicPartition("old", 0),))), topics) == set()
    assert unread_topics(described("g"), topics) == frozenset()
    assert unread_topics(None, topics) == frozenset()
    left = view("g", [row("old", 0, 40)], [Wait(99 * MINUTE_MS)], described("g", reads))
    left = left._replace(unread=frozenset({"old"}))
    assert "no member reads old" in group_page(snapshot(left, at_ms=NOW_MS), left, [], [], NOW_MS)


def test_a_group_stands_still_since_its_slowest_partition_does() -> None:
    rows = [row("t", number, 40) for number in range(3)]
    stood = {TopicPartition("t", number): Stood(40, since_ms) for number, since_ms in enumerate((8000, 1000, 0))}
    group = view("g", rows, [Wait(9000), Wait(5000), NOTHING_WAITS], progress_ms=9000)._replace(stood=stood)
    name = "groupkeeper_group_progress_timestamp_seconds"
    found = snapshot(group, at_ms=10_000)
    assert dict(group_samples(found, group))[name].endswith(" 1.000\n")
    moved = group._replace(waits=[NOTHING_WAITS] * 3)
    assert dict(group_samples(found, moved))[name].endswith(" 9.000\n")


def test_an_open_transaction_is_named() -> None:
    group = view("g", [row("t", 0, 40)], [Wait(99 * MINUTE_MS, held_at=41)])
    page = group_page(snapshot(group, at_ms=NOW_MS), group, [], [], NOW_MS)
    assert "t-0: an open transaction keeps consumers of committed records at offset 41" in page
    tp, at = TopicPartition("t", 0), NOW_MS - 33 * MINUTE_MS
    known = TransactionDescription(NODE, TransactionState.ONGOING, 7, 0, 3600_000, at, (tp,))
    holder = OpenTransaction(tp, ProducerState(7, 0, transaction_start=41), "tx-<b>", known, is_asked=True)
    wait = Wait(99 * MINUTE_MS, held_at=41, holder=holder)
    group = view("g", [row("t", 0, 40)], [wait], described("g", member("m", tp)), progress_ms=NOW_MS)
    shown = snapshot(group, at_ms=NOW_MS)
    said = "offset 41: tx-&lt;b&gt; of producer 7, open for 33 min (open); its coordinator aborts it after 1 h"
    for page in (group_page(shown, group, [], [], NOW_MS), fleet_page([shown], NOW_MS)):
        assert said in page
