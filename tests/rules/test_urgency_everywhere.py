"""One fleet, with a group for each case that polls and tables can both know, through the first page, the API, commands,
alerts and the report: they say the same of each group, and show the groups in the same order.
"""

import json
import re
import shlex
from collections.abc import Mapping
from html import escape, unescape
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from tests.fleet_tables import write
from tests.rules.cases import Case, cases
from tests.rules.test_surfaces import LATER_MS, NOW_MS, is_seen, view_of
from tests.rules.test_tables import can_be, tables_of
from tests.unit.live.views import snapshot

from groupkeeper.cli.groups.statuses import judged
from groupkeeper.cli.pipeline.report import _json_text, summary_text
from groupkeeper.client.admin.types import ConsumerGroupDescription, TopicPartition
from groupkeeper.live.alerts import Alerts
from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.live.rules import rules_of
from groupkeeper.pipeline.present.status import status
from groupkeeper.pipeline.report.model import Report
from groupkeeper.pipeline.report.page import headline, page
from groupkeeper.pipeline.report.reading import read_report
from groupkeeper.rules.causes import Cause
from groupkeeper.rules.status import RANKS, Status
from groupkeeper.rules.urgency import TITLES, Urgency
from groupkeeper.web.api.answers import _group_row
from groupkeeper.web.pages.cluster import Wish, chosen
from groupkeeper.web.pages.fleet import fleet_page
from groupkeeper.web.pages.judged import rows_of
from groupkeeper.web.pages.statuses import GroupStatuses, causes_of

BAD = [each for each in Status if RANKS[each] > RANKS[Status.UNKNOWN]]
BOTH = [case for case in cases() if is_seen(case) and can_be(case)]
NAMES = {f"g{number:02}": case for number, case in enumerate(BOTH)}


def named(value: Any, name: str) -> Any:
    """What tables have of the group, under its name: the topics are its own."""
    if isinstance(value, dict):
        return {key: named(each, name) for key, each in value.items()}
    if isinstance(value, list):
        return [named(each, name) for each in value]
    if isinstance(value, str) and re.match(r"(topic|left)-\d|another$", value):
        return f"{name}.{value}"
    return name if value == "g" else value


def polled() -> ClusterSnapshot:
    def view(name: str, case: Case) -> GroupView:
        found = view_of(case)
        rows = [row._replace(group_id=name) for row in found.rows]
        assert isinstance(found.description, ConsumerGroupDescription)
        places = tuple(TopicPartition(row.topic, row.partition) for row in rows if row.topic not in found.unread)
        members = tuple(each._replace(assignment=places) for each in found.description.members)
        description = found.description._replace(members=members)
        committed = found.committed if any(row.committed for row in rows) else None
        return found._replace(group_id=name, rows=rows, description=description, committed=committed)

    return snapshot(*(view(name, case) for name, case in NAMES.items()), at_ms=NOW_MS, cluster="c")


def reported(folder: Path) -> Report:
    """The report of the tables."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for name, case in NAMES.items():
        for table, (_, own) in tables_of(case).items():
            rows.setdefault(table, []).extend(named(own, name))
    schemas = {name: table for name, (table, _) in tables_of(BOTH[0]).items()}
    given = {name: pa.Table.from_pylist(list(map(dict, own)), schemas[name].arrow) for name, own in rows.items()}
    rows["status"] = status(**given).to_pylist()
    return read_report(str(write(folder / "tables", rows)), hours=24, top=100)


class Said(NamedTuple):
    """Of a group. `step`: the command; "" as `title` and `why`: the group is not told of."""

    status: str
    urgency: str
    reason: str | None
    title: str
    why: str
    step: str


def by_page(found: ClusterSnapshot, name: str) -> tuple[Said, bool]:
    """The first page with this group alone, and its row in the API. Also whether the page has what no table has: a
    cause, as of `groups why`, or since when a partition stands still that is lagging.
    """
    [row] = [row for row in rows_of(found) if row.group.group_id == name]
    json_row = _group_row(found, row, {})
    html = fleet_page([snapshot(found.groups[name], at_ms=NOW_MS, cluster="c")], LATER_MS)
    [title] = re.findall(r"<h2>(.*?) <span", html) or [""]
    [why] = re.findall(r'class="because">(.*?)</p>', html) or [""]
    [step] = re.findall(r"<code>(.*?)</code>", html) or [""]
    if json_row["urgency"] == Urgency.LEFT:  # a row of a table that opens
        title, why = TITLES[Urgency.LEFT], f"{json_row['reason']}."
    why, step = (unescape(re.sub("<.*?>", "", each)) for each in (why, step))
    causes = {each.cause for each in causes_of(found, row.group, GroupStatuses.of(row.group, NOW_MS))[:1]}
    knows_more = not causes <= {Cause.NO_MEMBERS} or "has not moved for" in why
    return Said(json_row["group_status"], json_row["urgency"], json_row["reason"], title, why, step), knows_more


def by_report(report: Report, name: str) -> Said:
    """The report, and its JSON."""
    content = json.loads(_json_text(report, None, []))
    [group] = [each for each in content["groups"] if each["group_id"] == name]
    found = [each for each in content["findings"] if each["group_id"] == name]
    said = group["status"], group["urgency"], group["rule"].replace(f"{name}.", "")
    if not found:
        return Said(*said, "", "", "")
    [finding] = found
    assert finding["kind"] == group["urgency"]
    html = page(report)
    title = TITLES[Urgency(finding["kind"])]
    assert f"</b> {title}</h2>" in html
    assert escape(finding["note"]) in html.replace("<wbr/>", "")
    return Said(*said, title, finding["note"].replace(f"{name}.", ""), shlex.join(finding["command"]))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return reported(tmp_path_factory.mktemp("report"))


@pytest.mark.parametrize("name", NAMES)
def test_page_and_report_say_the_same(report: Report, name: str) -> None:
    seen, knows_more = by_page(polled(), name)
    told = by_report(report, name)
    if seen.status == Status.OK:  # polls judge no partition where sums tell that all is well
        told = told._replace(reason=seen.reason)
    if knows_more:
        told = told._replace(why=seen.why, step=seen.step)
    assert told == seen


@pytest.mark.parametrize("name", NAMES)
def test_commands_and_alerts_say_it_too(name: str) -> None:
    found = polled()
    seen, _ = by_page(found, name)
    rows = judged(found).rows
    assert rows is not None
    assert (rows[name]["group_status"], rows[name]["reason"]) == (seen.status, seen.reason)
    rules = rules_of({"rule": [{"name": "r", "groups": [name], "status": BAD, "to": ["w"]}],
                      "webhook": {"w": {"url": "http://127.0.0.1"}}}, Path())  # fmt: skip
    notices = Alerts(rules).take(found, NOW_MS)
    assert bool(notices) is (seen.status in BAD)
    for notice in notices:
        assert notice.texts == (f"status {seen.status}: {seen.reason}",)
        assert notice.command == seen.step


def test_lists_have_the_same_order(report: Report) -> None:
    found = polled()
    order = [row.group.group_id for row in chosen(rows_of(found), Wish())]
    assert [each.group_id for each in report.groups] == order
    acting = [each.group_id for each in report.findings if each.kind in TITLES]
    assert acting == [name for name in order if name in acting]
    shown = re.findall(r'class="name"><a [^>]*group=(g\d\d)', fleet_page([found], LATER_MS))
    assert shown[:12] == order[:12]
    said = re.findall(r"^\w+ +(g\d\d) ", summary_text(report), re.MULTILINE)
    assert said == [name for name in order if name in said] != []


def test_the_fleet_is_told_in_the_same_sentence(report: Report) -> None:
    html = fleet_page([polled()], LATER_MS)
    [text] = re.findall(r'<p class="(banner .*?)</p>', html)
    assert text == f'banner {headline(report)[0]}">{headline(report)[1]}'
