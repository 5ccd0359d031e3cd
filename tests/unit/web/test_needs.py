"""The groups that need attention, as the first page shows them."""

from urllib.parse import parse_qs, urlsplit

import pytest
from tests.unit.live.views import described, member, row, snapshot, view
from tests.unit.web.test_pages import EVIL, NOW_MS, Page

from groupkeeper.client.admin.resources.types import ProducerState
from groupkeeper.client.admin.types import GroupState, TopicPartition
from groupkeeper.live.model import GroupView, Stood, Wait
from groupkeeper.operations.problems import Problem
from groupkeeper.operations.transactions import OpenTransaction
from groupkeeper.rules.progress import Trend
from groupkeeper.rules.urgency import TITLES, Urgency
from groupkeeper.rules.words import moment
from groupkeeper.shell import way_of_servers
from groupkeeper.web.pages.change import change_page
from groupkeeper.web.pages.cluster import Wish, cluster_page
from groupkeeper.web.pages.fleet import fleet_page
from groupkeeper.web.pages.parts import Viewer
from groupkeeper.web.pages.search import search_page

MINUTE_MS = 60_000
LONG_AGO_MS = NOW_MS - 33 * MINUTE_MS
STOOD = {TopicPartition("t", 0): Stood(40, LONG_AGO_MS)}
DAYS = Wait(9 * 86_400_000, margin_ms=86_400_000)


def live(name: str, wait: Wait, **more: object) -> GroupView:
    reader = described("live", member("reader", TopicPartition("t", 0)))
    group = view(name, [row("t", 0, 40)], [wait], reader, progress_ms=NOW_MS - 1000)
    return group._replace(**more)  # type: ignore[arg-type]


def dead(name: str, wait: Wait = DAYS, start: int = 0) -> GroupView:
    return view(name, [row("t", 0, 40, start=start)], [wait], progress_ms=LONG_AGO_MS)._replace(is_old=True)


def shown_of(page: Page) -> list[str]:
    return [parse_qs(urlsplit(link).query)["group"][0] for link in page.links if link.startswith("/group?")]


def at_night() -> list[GroupView]:
    """A group in each kind of trouble."""
    reader = described("report", member("reporter", TopicPartition("t", 0)))
    return [
        *(dead(f"console-consumer-{number}") for number in range(20)),
        dead("export", start=50),
        dead("audit-archive", Wait(20 * MINUTE_MS, margin_ms=2 * MINUTE_MS)),
        live("calm", Wait(1000)),
        live("enricher", Wait(20 * MINUTE_MS, margin_ms=86_400_000), lag_change_per_s=48.0, trend=Trend.GROWING),
        live("mender", Wait(9 * MINUTE_MS), lag_change_per_s=-2.0, trend=Trend.SHRINKING),
        live("indexer", Wait(0), rebalances_lately=73),
        live("settlement", Wait(33 * MINUTE_MS), stood=STOOD, progress_ms=NOW_MS),
        view("report", [row("t", 0, None)], [Wait(None)], reader)._replace(committed=None),
    ]


def test_a_lag_that_grows_slower_than_its_rates_differ_is_told_as_steady() -> None:
    group = live("g", Wait(7 * MINUTE_MS), lag_change_per_s=30.0, trend=Trend.STEADY)
    text = Page(fleet_page([snapshot(group, at_ms=NOW_MS)], NOW_MS)).text
    assert "trend steady" in text
    assert "more records are written" not in text


def test_what_can_still_be_saved_comes_first_and_the_dead_are_one_row() -> None:
    firing = {("prod", "enricher"): ["behind"]}
    html = fleet_page([snapshot(*at_night(), at_ms=NOW_MS)], NOW_MS, firing=firing)
    page = Page(html)
    assert shown_of(page)[:7] == ["audit-archive", "settlement", "enricher", "mender", "indexer", "report", "export"]
    assert set(shown_of(page)[7:]) == {f"console-consumer-{number}" for number in range(20)}
    assert (
        "6 of 28 groups need attention, and 21 without members are behind; the status of 1 is unknown. 1 alert fires ."
        in page.text
    )
    assert "/alerts" in page.links
    where = "--bootstrap-server HOST:PORT"
    expiring = (
        "Unread records are about to be removed 1 stopped since 21:53 UTC audit-archive prod Unread records of t-0 "
        "may be removed in 2 min, and the group has no members: start its consumers. members none records to read 60 "
        f"trend — time lag 20 min may be removed in 2 min look closer: groupkeeper groups why {where} audit-archive"
    )
    standing = (
        "Members are connected, but records stay unread or are lost 1 stopped since 21:40 UTC settlement prod t-0: "
        "offset 40 does not move, and 60 records wait; it is the only partition of the group: restart its "
        "program, or see what it does. members 1 records to read 60 trend — time lag 33 min may be "
        f"removed — look closer: groupkeeper groups why {where} settlement"
    )
    behind = (
        "Consumers read too slowly 2 lagging since 21:58 UTC enricher prod alert: behind Each second 48 more records "
        "are written than read; 1 member reads 1 partition. t-0: the next record has waited for 20 min. members 1 "
        "records to read 60 trend growing 48/s time lag 20 min may be removed in 1 d look closer: "
        f"groupkeeper groups offsets --trend 10s {where} enricher"
    )
    for said in (
        expiring,
        standing,
        behind,
        "mender prod It catches up in 30 s if it goes on like this. t-0: the next record has waited for 9 min. members",
        "Members come and go all the time 1 unstable indexer prod 73 rebalances in the last 10 min: members",
        f"groupkeeper groups watch {where} indexer",
        f"{TITLES[Urgency.REST]} 1 unknown report prod t-0: nothing is committed, and the log has 100 records",
        f"groupkeeper groups members {where} report",
        "21 groups without members, behind: review and sweep export (10 records lost), 20 of kafka-console-consumer",
        f"prod 21 groupkeeper plan sweep --idle 1d {where} 'console-consumer-*' group",
    ):
        assert said in page.text, (said, page.text)
    assert 'id="left"' in html
    assert "/change" not in html


def test_a_group_with_an_alert_is_not_folded_with_those_that_nobody_needs() -> None:
    groups = [dead("billing"), dead("export"), dead("console-consumer-7")]
    firing = {("prod", "billing"): ["behind"], ("prod", "console-consumer-7"): ["behind"], ("dr", "export"): ["behind"]}
    text = Page(fleet_page([snapshot(*groups, at_ms=NOW_MS)], NOW_MS, firing=firing)).text
    assert "1 of 3 groups needs attention, and 2 without members are behind." in text
    shown, _, folded = text.partition("2 groups without members")
    assert "billing prod alert: behind" in shown
    assert "billing" not in folded
    assert f"no commit was seen since {moment(LONG_AGO_MS)} UTC. If nobody needs them" in folded


def test_no_group_of_business_is_swept_with_what_is_left_of_consoles() -> None:
    html = fleet_page([snapshot(*(dead(f"job-[{number}]") for number in range(5)), at_ms=NOW_MS)], NOW_MS)
    text = Page(html).text
    assert "5 groups without members, behind: review and sweep job-[0], job-[1], job-[2], 2 more" in text
    assert "--bootstrap-server HOST:PORT 'job-[[]0]' 'job-[[]1]' 'job-[[]2]'" in text
    assert "No group of 5 is known to need attention, and 5 without members are behind." in text


def test_a_partition_that_stands_still_is_told_before_the_patience_of_its_group_ends() -> None:
    stood = {TopicPartition("t", 0): Stood(40, NOW_MS - 7 * MINUTE_MS)}
    group = live("g", Wait(7 * MINUTE_MS), lag_change_per_s=2.0, trend=Trend.GROWING, stood=stood)
    who = member("m", TopicPartition("t", 0))
    group = group._replace(rows=[each._replace(member=who) for each in group.rows])
    text = Page(fleet_page([snapshot(group, at_ms=NOW_MS)], NOW_MS)).text
    assert (
        "has waited for 7 min. The committed offset has not moved for 7 min; its member is m on /127.0.0.1. members 1"
        in text
    )
    assert "groupkeeper groups why --bootstrap-server HOST:PORT g" in text
    assert "Each second" not in text


def test_a_group_behind_an_open_transaction_is_helped_by_what_is_known_of_it() -> None:
    tp = TopicPartition("t", 0)
    holder = OpenTransaction(tp, ProducerState(7, 0, transaction_start=41), "tx-1", None, is_asked=True)
    held = Wait(20 * MINUTE_MS, held_at=41, holder=holder)
    group = live("g", held, stood=STOOD, lag_change_per_s=2.0, trend=Trend.GROWING)
    text = Page(fleet_page([snapshot(group, at_ms=NOW_MS)], NOW_MS)).text
    assert "t-0: an open transaction keeps consumers of committed records at offset 41: tx-1" in text
    assert "look closer: groupkeeper transactions describe --bootstrap-server HOST:PORT tx-1" in text


def test_the_reason_of_a_whole_group_begins_with_a_capital() -> None:
    left = described("g", state=GroupState.EMPTY)
    group = view("g", [row("t", 0, 40)], [Wait(9 * MINUTE_MS)], left, progress_ms=LONG_AGO_MS)
    text = Page(fleet_page([snapshot(group, at_ms=NOW_MS)], NOW_MS)).text
    assert "g prod The group has no members, and 60 records wait: start its consumers" in text


def test_of_a_cluster_that_is_down_the_last_known_groups_stay() -> None:
    down = snapshot(at_ms=None, problems=(Problem("CALL_TIMED_OUT", "no answer"),))
    down = down._replace(last=snapshot(*at_night(), at_ms=NOW_MS))
    page = Page(fleet_page([down], NOW_MS + 3_600_000))
    assert (
        "1 cluster cannot be reached: prod; 6 of 28 groups need attention, and 21 without members are behind; "
        "the status of 1 is unknown." in page.text
    )
    assert "audit-archive prod, last known 1 h ago Unread records of t-0" in page.text


def test_more_than_fit_are_counted_with_links_to_them() -> None:
    groups = [live(f"g-{number:02}", Wait(20 * MINUTE_MS)) for number in range(15)]
    page = Page(fleet_page([snapshot(*groups, at_ms=NOW_MS)], NOW_MS))
    assert "Consumers read too slowly 15" in page.text
    assert "and 3 more: prod lagging 3" in page.text
    assert "/cluster?cluster=prod&status=lagging" in page.links
    assert len(shown_of(page)) == 12


@pytest.mark.parametrize("make", [live, dead])
def test_names_are_names_there(make: object) -> None:
    group = live(EVIL, Wait(20 * MINUTE_MS)) if make is live else dead(EVIL)
    shown = snapshot(group, cluster=EVIL, at_ms=NOW_MS)
    ways = {EVIL: way_of_servers("kafka-1:9092", "/etc/a file")}
    html = fleet_page([shown], NOW_MS, Viewer(changes=True), firing={(EVIL, EVIL): [EVIL]}, ways=ways)
    assert shown_of(Page(html)) == [EVIL]
    assert "--bootstrap-server kafka-1:9092 --command-config '/etc/a file'" in Page(html).text
    assert any(link.startswith(("/change?", "/sweep?")) for link in Page(html).links)


def test_lists_and_the_search_begin_with_what_can_still_be_saved() -> None:
    shown = snapshot(*at_night(), at_ms=NOW_MS)
    for html in (cluster_page(shown, Wish(), NOW_MS), search_page([shown], "e")):
        names = shown_of(Page(html))
        assert names[:4] == ["audit-archive", "settlement", "enricher", "mender"]
        assert (
            names.index("indexer") < names.index("report") < names.index("export") < names.index("console-consumer-0")
        )


@pytest.mark.parametrize(("changes", "is_there"), [(False, True), (True, False)])
def test_a_server_that_changes_nothing_names_the_commands(changes: bool, is_there: bool) -> None:
    group, way = live(EVIL, Wait(1000)), way_of_servers("kafka-1:9092")
    html = change_page(snapshot(group), group, Viewer(changes=changes), "no", ["prod"], way)
    said = "groupkeeper plan reset --all-topics --to-earliest --bootstrap-server kafka-1:9092 $'<script>"
    assert (said in Page(html).text) is is_there
