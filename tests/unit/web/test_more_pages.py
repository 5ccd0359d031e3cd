"""Topics, the journal, plans and streams groups: what their pages say, whatever names are like."""

import ast
import asyncio
import re
from pathlib import Path

from tests.unit.live.views import NODE, described, member, row, snapshot, view
from tests.unit.web.test_change_pages import SOMEBODY, entry
from tests.unit.web.test_pages import EVIL, NOW_MS, Page

from groupkeeper.client.admin.streams_types import (
    StreamsGroupDescription,
    StreamsMemberDescription,
    StreamsSubtopology,
    StreamsTask,
    StreamsTasks,
    StreamsTopic,
)
from groupkeeper.client.admin.types import GroupState, GroupType, OffsetAndMetadata, TopicPartition
from groupkeeper.live.model import ClusterSnapshot, GroupView, Wait
from groupkeeper.operations.plans.changes import ApplyResult, ChangeSummary, Head, Lost
from groupkeeper.operations.plans.journal import Journal
from groupkeeper.operations.plans.model import Subject
from groupkeeper.web.access.people import Person
from groupkeeper.web.access.roles import Rights, grants_of
from groupkeeper.web.changes.record import ChangeRecord
from groupkeeper.web.pages import parts
from groupkeeper.web.pages.group import group_page
from groupkeeper.web.pages.journal import change_made_page, journal_page, plans_page
from groupkeeper.web.pages.topics import topic_page, topics_of, topics_page

PAIRS = {TopicPartition(EVIL, 0): (OffsetAndMetadata(5), OffsetAndMetadata(9)), TopicPartition("t", 1): (None, None)}


def read() -> ClusterSnapshot:
    """Topic a is read by two groups, b by one, and one has an evil name."""
    return snapshot(
        view("one", [row("a", 0, 40), row("a", 1, 90), row("b", 0, 100)], [Wait(5000), Wait(1000), Wait(0)],
             described("one", member("m", TopicPartition("a", 0)))),
        view("two", [row("a", 0, 20)], [Wait(90_000, margin_ms=7000)]),
        view(EVIL, [row(EVIL, 0, 100)]),
        cluster=EVIL,
    )  # fmt: skip


def test_topics_and_who_reads_them() -> None:
    by_name = {topic.name: topic for topic in topics_of(read())}
    a = by_name["a"]
    assert (a.partitions, len(a.readers), a.active, a.lag, a.lag_ms, a.margin_ms) == (2, 2, 1, 80, 90_000, 7000)
    page = Page(topics_page(read(), {"sort": "groups"}, NOW_MS))
    assert "3 topics" in page.text
    assert page.text.index(" a 2 2 1 80 1 min 30 s 7 s") < page.text.index(" b 1 1 0 ")
    for wish in ({"q": "B"}, {"sort": EVIL, "order": EVIL, "page": EVIL, "q": EVIL}):
        assert "1 topic " in Page(topics_page(read(), wish, NOW_MS)).text
    readers = Page(topic_page(read(), a, {"sort": "lag"}, NOW_MS)).text
    assert readers.index(" two ") < readers.index(" one ")
    Page(topic_page(read(), by_name[EVIL], {}, NOW_MS))


def journal_of(folder: Path) -> Journal:
    journal = Journal(folder / "journal.jsonl")
    for number, groups in enumerate((["orders"], ["orders", EVIL], ["a", "b", "c", "d"])):
        head = Head(f"id-{number}", NOW_MS + number, "cluster-id", "reset", EVIL, EVIL, ("groupkeeper", EVIL))
        journal.begin(head, [(group, PAIRS) for group in groups])
        if number:
            journal.end(head.id, NOW_MS, len(groups), ApplyResult.PARTLY, [Lost("orders", EVIL, 0, "X", EVIL)])
    other = Head("id-9", NOW_MS, "another", "undo", "u", "h", (), undoes="id-0")
    journal.begin(other, [("orders", PAIRS)])
    return journal


async def test_the_journal(tmp_path: Path) -> None:
    record = ChangeRecord(journal_of(tmp_path))
    record.know([read()])
    assert SOMEBODY.person is not None
    await record.refresh()
    changes = await record.changes(SOMEBODY.person)
    page = Page(journal_page(record, changes, {}, SOMEBODY))
    assert "4 changes" in page.text
    assert "a, b, c and 1 more" in page.text
    assert "2 changes" in Page(journal_page(record, changes[1:], {"group": "orders"}, SOMEBODY)).text
    Page(journal_page(record, changes, {"group": EVIL, "page": EVIL}, SOMEBODY))
    recorded = await record.load("id-1")
    assert recorded is not None
    made = change_made_page(record, recorded, SOMEBODY, may_undo=True)
    assert "Not all of the change succeeded" in Page(made).text
    assert 'name="change" value="id-1"' in made
    assert 'name="change"' not in change_made_page(record, recorded, SOMEBODY, may_undo=False)


async def test_of_the_journal_one_sees_what_one_may_see_of_groups(tmp_path: Path) -> None:
    record = ChangeRecord(journal_of(tmp_path))
    role = {"users": ["u"], "may": "view", "clusters": ["prod"], "groups": ["orders"]}
    person = Person("u", Rights(tuple(grants_of({"role": [role]}))))
    await record.refresh()
    assert await record.changes(person) == []  # which cluster it was isn't known yet
    record.know([snapshot()])
    assert [each.head.id for each in await record.changes(person)] == ["id-0"]


async def test_an_abort_is_of_no_group_and_seen_by_who_sees_the_whole_cluster(tmp_path: Path) -> None:
    """Also where the transactional id is called like a group that one may see."""
    record = ChangeRecord(Journal(tmp_path / "journal.jsonl"))
    head = Head("id", NOW_MS, "cluster-id", "abort-transaction", "u", "h", (), subject=Subject.TRANSACTION)
    record.journal.begin(head, [("orders", {TopicPartition("orders", 0): (None, None)})])
    record.know([snapshot()])
    await record.refresh()

    async def seen(**grant: object) -> list[ChangeSummary]:
        role = {"users": ["u"], "may": "view", **grant}
        return await record.changes(Person("u", Rights(tuple(grants_of({"role": [role]})))))

    assert await seen(clusters=["prod"], groups=["orders"]) == []
    assert await seen(clusters=["another"]) == []
    (change,) = await seen(clusters=["prod"])
    assert "0 changes" in Page(journal_page(record, [change], {"group": "orders"}, SOMEBODY)).text
    assert " orders " in Page(journal_page(record, [change], {}, SOMEBODY)).text
    recorded = await record.load("id")
    assert recorded is not None
    page = Page(change_made_page(record, recorded, SOMEBODY, may_undo=False)).text
    assert ("transactions 1" in page, "groups 1" in page) == (True, False)


async def test_a_journal_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    record = ChangeRecord(journal)
    assert SOMEBODY.person is not None
    await record.refresh()
    assert await record.changes(SOMEBODY.person) == []
    journal_of(tmp_path)
    await asyncio.gather(record.refresh(), record.refresh())
    assert len(await record.changes(SOMEBODY.person)) == 4
    journal.path.unlink()
    journal.path.mkdir()
    await record.refresh()
    assert re.search("not read since 20.*cannot read the journal", Page(journal_page(record, [], {}, SOMEBODY)).text)
    assert len(await record.changes(SOMEBODY.person)) == 4


def test_the_plans_that_are_held() -> None:
    page = Page(plans_page([entry(), entry(groups=3)], SOMEBODY))
    assert page.text.count(" fits") == 2
    assert "3 groups" in page.text
    assert "There are none" in Page(plans_page([], SOMEBODY)).text


def streams_group() -> GroupView:
    has = StreamsTasks((StreamsTask("0", 1), StreamsTask("0", 0)), (StreamsTask(EVIL, 2),))
    state_changelog_topics = (StreamsTopic("store-changelog"),)
    parts = StreamsSubtopology("0", ("orders", EVIL), (EVIL,), state_changelog_topics, (StreamsTopic("again"),))
    warming = StreamsTasks(warmup=(StreamsTask("0", 5),))
    group = StreamsGroupDescription(
        "app", GroupState.STABLE,
        (
            StreamsMemberDescription("m-1", EVIL, EVIL, 3, "p", 1, has, has),
            StreamsMemberDescription("m-2", "c", "h", 3, "q", 1, StreamsTasks(), warming),
        ),
        NODE, 3, 3, 1, (parts,),
    )  # fmt: skip
    shown = view("app", [row("orders", 0, 1)], description=described("app"))
    return shown._replace(group_type=GroupType.STREAMS, streams=group)


def test_a_streams_group_has_its_topology_and_tasks() -> None:
    shown = streams_group()
    assert shown.streams is not None
    text = Page(group_page(snapshot(shown), shown, [], [], NOW_MS)).text
    assert "0_0, 0_1" in text
    assert " as assigned " in text
    assert "warm-up 0_5" in text
    assert "store-changelog" in text
    silent = shown._replace(streams=shown.streams._replace(members=(), subtopologies=(), topology_epoch=None))
    assert "No member has sent its topology yet" in Page(group_page(snapshot(silent), silent, [], [], NOW_MS)).text


def chains(node: ast.expr) -> set[str]:
    """What an expression reads, as `row.group.lag`."""
    every = {one for one in ast.walk(node) if isinstance(one, ast.Attribute)}
    return {ast.unparse(one) for one in every - {one.value for one in every}}


def test_columns_sort_by_what_they_show() -> None:
    """Only a group's status sorts by more, its urgency: `row.rank`."""
    wrong = []
    for path in Path(parts.__file__).parent.glob("*.py"):
        seen = set[str]()
        for one in ast.walk(ast.parse(path.read_text())):
            match one:
                case ast.Call(ast.Name("PageColumn"), [title, shown, _, _, by]):
                    cell = [f"{of}." for of in chains(shown)]
                    hidden = {of for of in chains(by) if not any(f"{of}.".startswith(each) for each in cell)}
                    if hidden - {"row.rank"} or ast.unparse(by) in seen:
                        wrong.append(ast.unparse(title))
                    seen.add(ast.unparse(by))
    assert wrong == [], f"these sort by something else than their cells show, or as another column does: {wrong}"
