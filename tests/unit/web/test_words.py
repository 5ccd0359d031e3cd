"""The words of pages: each is in the glossary, or is plain English, and none is a value of a program."""

import re
from html import unescape
from pathlib import Path

from tests.unit.live.views import described, member, row, snapshot, view
from tests.unit.web.test_change_pages import SOMEBODY, entry
from tests.unit.web.test_more_pages import journal_of, read, streams_group
from tests.unit.web.test_pages import NOW_MS, Page

from groupkeeper.client.admin.types import GroupType, TopicPartition
from groupkeeper.live.history import Noted
from groupkeeper.operations.watch import What
from groupkeeper.web.changes.record import ChangeRecord
from groupkeeper.web.pages.cluster import Wish, cluster_page
from groupkeeper.web.pages.fleet import fleet_page
from groupkeeper.web.pages.glossary import glossary_page
from groupkeeper.web.pages.group import EVENTS, group_page
from groupkeeper.web.pages.journal import change_made_page, journal_page, plans_page
from groupkeeper.web.pages.plan import plan_page
from groupkeeper.web.pages.topics import topic_page, topics_of, topics_page

PLAIN = frozenset(
    "after before brokers by change changelogs client cluster compared group groups host kind made member members "
    "names partition partitions problem process reads since status topic type what when why".split()
)
"""What needs no explanation beside a name or a number."""

OF_PLANS = frozenset({"how far", "change in the journal", "made by", "record before", "record after", "undone by"})
OTHERS = frozenset(
    {
        "last poll took",
        "groups not read whole",
        "offset status",
        "status of the group",
        "reads after repartitioning",
        "writes to repartition",
    }
)


def terms() -> list[str]:
    found = re.findall(r"<dt>(.*?)</dt>", glossary_page())
    return [term.removesuffix(" (LSO)") for each in found for term in unescape(each).split(", ")]


async def pages(folder: Path) -> list[str]:
    record = ChangeRecord(journal_of(folder))
    await record.refresh()
    record.know([read()])
    assert SOMEBODY.person is not None
    recorded = await record.load("id-1")
    assert recorded is not None
    some = read()
    settled = member("a", TopicPartition("t", 0), target_assignment=(), member_epoch=6)
    consumers = view("g", [row("t", 0, 40)], description=described("g", settled, epoch=7))
    share = consumers._replace(group_type=GroupType.SHARE)
    changes = [Noted(NOW_MS, what.value, "m", None, "x") for what in What]
    return [
        fleet_page([some], NOW_MS),
        cluster_page(some, Wish(), NOW_MS),
        topics_page(some, {}, NOW_MS),
        topic_page(some, topics_of(some)[0], {}, NOW_MS),
        *(group_page(snapshot(each), each, [], changes, NOW_MS) for each in (consumers, share, streams_group())),
        journal_page(record, await record.changes(SOMEBODY.person), {}, SOMEBODY),
        change_made_page(record, recorded, SOMEBODY, may_undo=True),
        plan_page(entry(), SOMEBODY, may_change=True),
        plans_page([entry()], SOMEBODY),
    ]


def unexplained_labels(html: str) -> set[str]:
    """Heads of columns, and names beside values, that are neither in the glossary nor plain English."""
    found = re.findall(r'<th scope="col"[^>]*>(?:<a [^>]*>)?([^<]*)|<dt>([^<]*)</dt>', html)
    labels = {unescape("".join(each)).rstrip(" ▼▲") for each in found} - PLAIN - OF_PLANS - OTHERS
    known = re.compile("|".join(rf"\b{re.escape(term)}s?\b" for term in terms()))
    return {label for label in labels if not known.search(label)}


async def test_every_label_is_in_the_glossary(tmp_path: Path) -> None:
    assert {label for html in await pages(tmp_path) for label in unexplained_labels(html)} == set()


def test_events_are_told_in_words() -> None:
    assert set(EVENTS) == set(What)
    assert [name for name in EVENTS.values() if "_" in name] == []
    group = view("g", [row("t", 0, 40)])
    changes = [
        Noted(NOW_MS, "upgraded", "m-1", None, "True"),
        Noted(NOW_MS, "upgraded", "m-1", "False", "True"),
        Noted(NOW_MS, "assignment", "m-1", "t-0", ""),
        Noted(NOW_MS, "member_left", "m-2", "t-0 t-1", None),
    ]
    text = Page(group_page(snapshot(group), group, [], changes, NOW_MS)).text
    for said in (
        "member protocol m-1 — consumer",
        "member protocol m-1 classic consumer",
        "assignment m-1 t-0 nothing",
        "member left m-2 t-0 t-1 —",
    ):
        assert said in text
    assert "True" not in text
