"""The page of `groupkeeper pipeline report`: rows in, HTML out."""

import base64
import gzip
import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest

from groupkeeper.cli.pipeline.report import summary_text
from groupkeeper.html.look import SCRIPT, STYLE
from groupkeeper.html.plots import Activity, LagLine
from groupkeeper.pipeline.report import findings
from groupkeeper.pipeline.report.lag_lines import Steps, lag_at, log_of
from groupkeeper.pipeline.report.model import (
    STATUSES,
    Cluster,
    Details,
    Event,
    Finding,
    Group,
    Member,
    Report,
    Rewind,
    Stale,
    Unmeasured,
)
from groupkeeper.pipeline.report.page import headline, page
from groupkeeper.pipeline.report.sections import anchor

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BEGIN = NOW - timedelta(hours=1)
EVIL = '</script><script>alert(1)</script><img src=x onerror="alert(2)">\'&\u202e\x1b[31m'


def a_group(group_id: str = "g", **values: object) -> Group:
    """A group that lags; `values` are other than usual."""
    usual = Group(
        "c", group_id, "consumer", "Stable", 2, 3, "lagging", "committing", BEGIN, 1_234_567, 3_605_000, 0, NOW, 4
    )
    (need,) = findings.reported([usual._replace(**values)], [], [], [])  # type: ignore[arg-type]
    return need.group


def acting(groups: list[Group]) -> list[Finding]:
    return findings.acting(findings.reported(groups, [], [], []), {}, {})


def a_report(groups: list[Group], **values: object) -> Report:
    """A report of those groups in one cluster."""
    statuses: dict[str, int] = {status: sum(each.status == status for each in groups) for status in STATUSES}
    cluster = Cluster("c", len(groups), 2, 3, 1_234_567, 3_605_000, statuses, 98_765, 11, 22, 33, 44, 55)
    clusters = (cluster,) if groups else ()
    usual = Report("tables", NOW, BEGIN, NOW, 24, 10, clusters, tuple(groups), (), (), (), (), ())
    return usual._replace(**values)  # type: ignore[arg-type]


class Reader:
    """What the page holds: it is well-formed XML but for the texts of its style and script."""

    def __init__(self, text: str) -> None:
        for own in (STYLE, SCRIPT):
            assert text.count(own) == 1
            text = text.replace(own, "")
        self.elements = list(ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>")).iter())
        rows = [each for each in self.elements if each.tag == "tr"]
        self.rows = [["".join(cell.itertext()) for cell in row] for row in rows]

    def row(self, *cells: str) -> list[str]:
        """The row with those cells among its own."""
        (found,) = [row for row in self.rows if set(cells) <= set(row)]
        return found


def test_a_cluster_that_could_not_be_measured_is_named() -> None:
    away = (Unmeasured("prod", "cluster prod has not answered for 5 s"),)
    text = page(a_report([a_group()], unmeasured=away))
    told = "Lag and statuses in cluster prod are unknown, as it could not be measured: cluster prod has not answered"
    assert told in "".join(text.replace("<wbr>", "").split("\u200b"))


def test_a_reason_is_shown_whole() -> None:
    rule = (
        "orders-of-all-shops-and-warehouses-7: the oldest record to read has waited for 3 h 10 min, and nothing was "
        "committed for 2 h 5 min; the group has no members; 46 rebalances in the last 10 min"
    )
    group = a_group(rule=rule, status="stopped")
    text = page(a_report([group], findings=tuple(acting([group]))))
    assert text.count(rule) == 3  # in front, in the table, and in the group's section
    assert "…" not in Reader(text).row(rule)[2]


def everything(name: str) -> Report:
    """A report with something everywhere, all of it under this name."""
    line = LagLine(name, name, ((BEGIN, 5), (BEGIN + timedelta(minutes=30), 70), (NOW, 60)), BEGIN)
    return a_report(
        [a_group(name, cluster=name, rule=name, group_type=name)],
        directory=name,
        clusters=(Cluster(name, 1, 2, 3, 4, 5, {"lagging": 1}, 6, 7, 8, 9, 1, 1),) * 2,
        activity=(Activity(name, BEGIN, 1, (600, 0, 30), (0, 2, 0), (1, 1, 1)),),
        lag_lines=(line,),
        rewinds=(Rewind(name, name, name, 7, NOW, 5_000, 1_000, 4_000, True, name, name, name, name, name, name),),
        stale=(Stale(name, name, name, 2, (name, "t"), 45.0, NOW, None),),
    )


@pytest.mark.parametrize("name", [EVIL, '"><svg onload=alert(1)>', "javascript:alert(1)", "\ud800", ""])
def test_names_are_nothing_but_text(name: str) -> None:
    text = page(everything(name))
    text.encode()
    found = Reader(text)
    tags = [each.tag for each in found.elements]
    assert tags.count("script") == 1
    assert not {"img", "iframe", "object", "link"} & set(tags)
    attributes = {attribute for each in found.elements for attribute in each.attrib}
    assert not {each for each in attributes if each.startswith("on") or each in ("src", "style", "srcset")}
    assert {each.attrib["href"][:1] for each in found.elements if "href" in each.attrib} == {"#"}
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert "\x1b" not in summary_text(everything(name))


def test_nothing_runs_but_the_pages_own_script() -> None:
    text = page(everything("g"))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.findall(r"https?://", text)


def test_what_to_act_on_stands_first_and_the_rest_is_folded() -> None:
    groups = [a_group(f"bad-{number}", status="stopped", rule="nobody commits") for number in range(8)]
    report = a_report([*groups, a_group("fine", status="ok")], findings=tuple(acting(groups)))
    text = page(report)
    head = text[: text.index("<nav>")]
    shown, folded = head.split("<details>")
    assert [f"bad-{number}<" in shown for number in range(8)] == 3 * [True] + 5 * [False]
    assert [f"bad-{number}<" in folded for number in range(8)] == 3 * [False] + 5 * [True]
    assert shown.count("1 h stopped<") == shown.count("nobody commits. · since 2026-03-01 11:00:00<") == 3
    assert shown.count("<code>groupkeeper groups why --bootstrap-server HOST:PORT bad-") == 3
    assert "<summary>5 more</summary>" in folded
    assert "fine<" not in head
    assert 'class="act' not in page(a_report([a_group("fine", status="ok")]))


def test_what_is_left_is_not_said_to_have_begun() -> None:
    """Its time is that of its cluster's measurement, which differs from the others' by a moment."""
    time = NOW - timedelta(milliseconds=32)
    found = Finding("expiring", "c", "g", "t-0", 3_600_000, "ms left", time, "soon gone", ())
    text = page(a_report([a_group("g", status="stopped")], findings=(found,)))
    assert "soon gone<" in text


def test_bins_at_the_edges_of_the_window_are_rates_of_what_they_cover() -> None:
    activity = Activity("c", BEGIN, 15, (20, 300, 40), (1, 5, 2), (1, 15, 2))
    text = page(a_report([a_group()], activity=(activity,)))
    assert 'data-unit="commits/min" data-values="0:20 900:20 1800:20"' in text
    assert 'data-unit="rebalances" data-values="0:1 900:5 1800:2"' in text


def test_what_is_shown_is_what_the_rows_say() -> None:
    line = LagLine("c", "g", ((BEGIN, 5), (NOW, 1_234_567)), BEGIN)
    report = a_report(
        [a_group(), a_group("idle", status="ok", lag=0, lag_ms=0, members=0, rule="nothing to read")],
        activity=(Activity("c", BEGIN, 1, (600, 0, 30), (0, 2, 0), (1, 1, 1)),),
        lag_lines=(line,),
        rewinds=(Rewind("c", "g", "orders", 7, NOW, 5_000, 1_000, 4_000, True),
                 Rewind("c", "g", "orders", 8, NOW, 1_000, 5_500, -4_500, None)),
        stale=(Stale("c", "old", "below_log_start", 2, ("orders",), 45.0, None, 321),),
    )  # fmt: skip
    text = page(report)
    found = Reader(text)
    assert found.row("g", "committing")[3:] == [
        "1,234,567", "1 h", "consumer Stable", "2", "3", "4", "0 s ago"
    ]  # fmt: skip
    assert found.row("idle", "nothing to read")[3:5] == ["0", "0 s"]
    told = ": no journal entry is knownorders-"
    assert found.row(f"a reset, as it had no members{told}7: 5,000 → 1,000, 4,000 again")[2:5] == ["1", "4,000", "—"]
    assert found.row(f"by the group, or a reset{told}8: 1,000 → 5,500, 4,500 skipped")[2:5] == ["1", "—", "4,500"]
    assert found.row("old", "321")[1:] == ["records were deleted unread", "orders", "2", "45 d", "—", "321"]
    for label, value in (("lag", "1.23 M"), ("time lag", "1 h"), ("offset commits", "98.8 k"),
                         ("offsets expired", "11"), ("offsets deleted", "22"), ("rebalances", "33"),
                         ("rewinds and jumps", "44"), ("stale groups", "55")):  # fmt: skip
        assert f"<dt>{label}</dt><dd>{value}</dd>" in text
    assert "1,234,567 at 2026-03-01 12:00:00, the highest<" in text
    assert 'data-unit="records to read" data-values="0:5 3600:1234567"' in text
    assert "1 of 2 groups needs attention." in text
    assert "All times are UTC" in text
    short = summary_text(report)
    assert re.search(r"lagging +g +1,234,567 +1 h", short)
    assert re.search(r"old +below_log_start +2 +45 d +321", short)
    assert "1 of 2 groups needs attention." in short


def test_the_summary_fits_a_terminal_with_long_names() -> None:
    long = "settlement-and-reconciliation-service.production.eu-west-1.v2"
    report = a_report([a_group(long, cluster=f"{long}-cluster")])
    clusters = tuple(report.clusters[0]._replace(cluster=f"{long}-{name}") for name in ("cluster", "dr"))
    report = report._replace(clusters=clusters)
    assert max(map(len, summary_text(report, limit=100).splitlines())) <= 100
    assert long in summary_text(report)


def test_an_empty_fleet_and_one_without_commits() -> None:
    empty = a_report([], measured_time=None, since=None, until=None)
    assert "There are no consumer groups." in page(empty)
    assert "There are no consumer groups." in summary_text(empty)
    silent = a_group("silent", status="ok", rule="no committed offsets", partitions=0, lag=None, lag_ms=None,
                     last_commit_time=None)  # fmt: skip
    report = a_report([silent])
    assert headline(report) == ("good", "No group of 1 is known to need attention.")
    assert Reader(page(report)).row("silent", "no committed offsets")[3:5] == ["—", "—"]
    unknown = a_report([a_group(status="unknown", lag=None, lag_ms=None, unknown=3)])
    assert headline(unknown) == ("none", "The status of 1 group is unknown.")


def test_what_is_not_known_is_not_told() -> None:
    text = page(a_report([a_group()], missing=("rewinds", "stale")))
    assert "Missing in the directory: rewinds, stale." in text
    assert "Not known without the table rewinds." in text
    assert "No offset was moved back" not in text


def test_a_partition_that_could_not_be_asked_makes_the_lag_a_least() -> None:
    assert Reader(page(a_report([a_group(unknown=1)]))).row("≥ 1,234,567")


def test_a_thousand_groups_stay_small() -> None:
    groups = [a_group(f"group-{number:04}-{'x' * 60}") for number in range(1000)]
    text = page(a_report(groups, stale=(Stale("c", "old", "idle", 2, ("orders",), 45.0, None, None),) * 1000))
    assert len(text.encode()) < 2_000_000
    assert "The first 300 of 1,000; all are in the tables." in text
    assert len(page(a_report([a_group("h" * 30_000)]))) < 40_000


def test_colours_only_when_asked_for() -> None:
    assert "\x1b" not in summary_text(a_report([a_group()]))
    assert "\x1b[33mlagging\x1b[0m" in summary_text(a_report([a_group()]), is_coloured=True)


def test_lag_of_the_past() -> None:
    """A group that reads 10 a second, 100 behind, and stops at 20; the first unread record is from 30, the end is 500
    at 50. Another group was further at 10.
    """
    log = log_of([(50, 500)], [(30, 201)], [(0, 0), (10, 150), (12, 100), (20, 200)])
    assert log.known_from == 30
    committed = Steps([(0, 0), (10, 100), (20, 200)])
    assert lag_at(-1, [(committed, log)]) == 0
    assert lag_at(10, [(committed, log)]) == 50
    assert lag_at(13, [(committed, log)]) == 50
    assert lag_at(30, [(committed, log)]) == 1
    assert lag_at(40, [(committed, log)]) == 150
    assert lag_at(50, [(committed, log)] * 2) == 600
    assert lag_at(60, [(committed, log)]) == 300
    removed = Steps([(0, 100), (40, None)])
    assert lag_at(45, [(removed, log)]) == 0


def test_times_that_contradict_each_other_do_not_turn_the_log_back() -> None:
    log = log_of([(50, 500), (60, 550)], [(10, 400), (30, 300)], [])
    assert log.ends == ((30, 300), (50, 500), (60, 550))
    assert log_of([], [], [(1, 7)]).end_at(5) == 7


def test_a_commit_past_the_end_does_not_raise_the_log() -> None:
    log = log_of([(50, 500)], [(40, 300)], [(0, 100), (10, 900), (20, 450)])
    assert [log.end_at(time) for time in (15, 25, 45)] == [100, 450, 450]


def test_each_group_has_a_section_packed_where_there_are_many() -> None:
    members = (Member(EVIL, EVIL, EVIL, EVIL, ((EVIL, (0, 1, 2, 7)),)),)
    evil = Details(partitions=(), members=members, events=(Event(BEGIN, NOW, EVIL, EVIL, 3),), left_out=(0, 0, 12))
    groups = [a_group(f"{EVIL}{number:03}") for number in range(60)]
    text = page(a_report(groups, details={(each.cluster, each.group_id): evil for each in groups}))
    packs = re.findall(r'<script type="text/plain" data-pack="sections" data-ids="([^"]+)">([^<]+)</script>', text)
    ((ids, data),) = packs
    assert ids.split() == [anchor(each.cluster, each.group_id) for each in groups[50:]]
    shown = gzip.decompress(base64.b64decode(data)).decode()
    for html in (text, shown):
        assert "<img" not in html
        assert "<script>alert" not in html
    assert shown.count("<details") == 10
    sections = list(ElementTree.fromstring(f"<div>{shown}</div>").iter("details"))
    said = "".join(sections[0].itertext())
    assert all(each in said for each in ("0–2, 7", "3 times", "12 more events", "alert(1)"))
    Reader(text)
