"""Each case through what shows verdicts: commands, `check`, alerts, pages, CSV and series say what the rules say."""

import csv
import io
import re
from collections.abc import Mapping

import pytest
from tests.rules.cases import Case, cases
from tests.unit.live.views import described, member, row, snapshot, view

from groupkeeper.cli.groups.statuses import judged
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.live.limits import GroupLimits, judge
from groupkeeper.live.model import NOTHING_WAITS, ClusterSnapshot, GroupView, Stood, Wait
from groupkeeper.live.statuses import judge_status, partition_statuses
from groupkeeper.operations.groups import unread_topics
from groupkeeper.operations.lag import PartitionLag
from groupkeeper.rules.limits import Verdict
from groupkeeper.rules.status import RANKS, Facts, Status, partition_status
from groupkeeper.web.exporter import Choices, Exporter
from groupkeeper.web.exposition import Format
from groupkeeper.web.pages.cluster import Wish, cluster_page, groups_csv
from groupkeeper.web.pages.group import group_page
from groupkeeper.web.pages.topics import topic_page, topics_of

NOW_MS = 1_700_000_000_000
LATER_MS = NOW_MS + 3_600_000
"""When somebody looks at pages: they say how groups were at the poll."""


def is_seen(case: Case) -> bool:
    """Whether polls can have these facts: they see offsets, not commits."""
    return all(facts.quiet_ms is None and facts.offset_before_rewind is None for facts in case.partitions)


def row_of(number: int, facts: Facts) -> PartitionLag:
    topic = f"{'left' if facts.is_read is False else 'topic'}-{number}"
    committed = facts.committed_offset
    if committed is None or facts.lag is None:
        return row(topic, 0, committed, facts.in_log)
    end = committed - 1 if facts.is_beyond else committed + facts.lag
    return row(topic, 0, committed, end, committed + (facts.lost or 0))


def wait_of(facts: Facts) -> Wait:
    if facts.waits_ms is None:
        return Wait(None, is_waiting=facts.committed_offset is not None) if facts.lag != 0 else NOTHING_WAITS
    return Wait(facts.waits_ms, margin_ms=facts.margin_ms) if facts.is_waiting else NOTHING_WAITS


def view_of(case: Case) -> GroupView:
    """The group as a poll finds it."""
    first = case.partitions[0]
    rows = [row_of(number, facts) for number, facts in enumerate(case.partitions)]
    topics = tuple(each.topic for each in rows if each.topic.startswith("topic")) or ("another",)
    members = [member(f"m-{number}", subscribed_topics=topics) for number in range(first.members or 0)]
    description = described("g", *members)._replace(is_simple=first.is_simple)
    stood = {
        TopicPartition(each.topic, 0): Stood(facts.committed_offset or 0, NOW_MS - facts.still_ms)
        for each, facts in zip(rows, case.partitions, strict=True)
        if facts.still_ms is not None
    }
    progress_ms = None if first.idle_ms is None else NOW_MS - first.idle_ms
    group = view("g", rows, [wait_of(facts) for facts in case.partitions], description, progress_ms=progress_ms)
    return group._replace(
        stood=stood, unread=unread_topics(description, frozenset(each.topic for each in rows)),
        usual_gap_ms=first.usual_gap_ms, rebalances=case.lately or 0, rebalances_lately=case.lately or 0,
    )  # fmt: skip


def said(found: ClusterSnapshot) -> Mapping[str, str]:
    """The status of the group by the surface that says it."""
    exporter = Exporter(Choices())
    exporter.take(found)
    text = b"".join(exporter.text(Format.PROMETHEUS)).decode()
    [series] = [line for line in text.splitlines() if line.startswith("groupkeeper_group_status{")]
    [line] = csv.DictReader(io.StringIO(groups_csv(found, Wish())))
    rows = judged(found).rows
    assert rows is not None
    broken = [
        status.value
        for status in Status
        for finding in judge(found, GroupLimits(statuses=frozenset({status})))
        if finding.verdict is Verdict.BROKEN
    ]
    pages = [cluster_page(found, Wish(), LATER_MS), group_page(found, found.groups["g"], [], [], LATER_MS),
             topic_page(found, topics_of(found)[0], {}, LATER_MS)]  # fmt: skip
    shown = [re.findall(r'class="status is-(\w+)"', page) for page in pages]
    return {
        "series": series.split('status="')[1].split('"')[0],
        "csv": line["status"],
        "command": str(rows["g"]["group_status"]),
        "check and alerts": ",".join(broken),
        "list": ",".join(shown[0]),
        "page": shown[1][0],  # then those of its partitions
        "topic": shown[2][0],
    }


@pytest.mark.parametrize("case", [case for case in cases() if is_seen(case)], ids=lambda case: case.name)
def test_all_surfaces_say_the_same(case: Case) -> None:
    group = view_of(case)
    assert said(snapshot(group, at_ms=NOW_MS)) == dict.fromkeys(
        ("series", "csv", "command", "check and alerts", "list", "page", "topic"), case.verdict
    )
    wanted = {TopicPartition(each.topic, 0): partition_status(facts)
              for each, facts in zip(group.rows, case.partitions, strict=True)}  # fmt: skip
    found = {tp: status for tp, (status, _) in partition_statuses(group, NOW_MS).items()}
    assert {tp: found.get(tp, Status.OK) for tp in wanted} == wanted
    assert dict(judge_status(group, NOW_MS).bad) == {
        tp: status for tp, status in wanted.items() if RANKS[status] >= RANKS[Status.STALLED]
    }
