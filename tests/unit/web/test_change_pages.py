"""Pages about changes: what they offer and refuse, whatever names are like."""

from typing import Any

from tests.unit.live.views import described, member, row, snapshot, view
from tests.unit.web.test_pages import EVIL, NOW_MS, Page

from groupkeeper.client.admin.types import GroupState, GroupType, OffsetAndMetadata, TopicPartition
from groupkeeper.live.model import GroupView
from groupkeeper.operations.errors import GroupIsActive, StalePlan
from groupkeeper.operations.plans.builder import Made
from groupkeeper.operations.plans.fit import PlanFit
from groupkeeper.operations.plans.model import Change, GroupPlan, Kind, Plan, PlanTrouble
from groupkeeper.shell import way_of_servers
from groupkeeper.web.access.people import Person
from groupkeeper.web.access.roles import Rights
from groupkeeper.web.changes.desk import DeskEntry
from groupkeeper.web.pages.change import change_page
from groupkeeper.web.pages.parts import Viewer
from groupkeeper.web.pages.plan import plan_page

SOMEBODY = Viewer(Person(EVIL, Rights(None, changes=True), "s"), "seal", has_login=True, changes=True)


def idle(**more: Any) -> GroupView:
    group = view(EVIL, [row(EVIL, 0, 40), row(EVIL, 1, 50)], state=GroupState.EMPTY)
    return group._replace(group_state=GroupState.EMPTY, **more)


def choices(group: GroupView, why_not: str = "") -> Page:
    return Page(change_page(snapshot(group, cluster=EVIL), group, SOMEBODY, why_not, [], way_of_servers("b:1")))


def entry(*troubles: PlanTrouble, kind: Kind = Kind.RESET, groups: int = 1) -> DeskEntry:
    tp = TopicPartition(EVIL, 0)
    change = Change(OffsetAndMetadata(40, None, EVIL), OffsetAndMetadata(10), 0, 100, NOW_MS, NOW_MS, EVIL)
    plans = tuple(GroupPlan(EVIL + "." * number, {tp: change}) for number in range(groups))
    plan = Plan("id", plans, kind, NOW_MS, ("groupkeeper", EVIL))
    fit = PlanFit(() if troubles else plans, (), troubles)
    return DeskEntry(EVIL, EVIL, Made(plan, (), (EVIL,)), fit, tuple(each.group_id for each in plans))


def test_what_is_offered_for_a_group_without_members() -> None:
    page = choices(idle())
    for button in ("Plan the reset", "Plan the deletion", "Plan the deletion of the group"):
        assert button in page.text


def test_what_is_disabled_says_why() -> None:
    assert "Plan" not in choices(idle(), "No role.").text
    share = choices(idle(group_type=GroupType.SHARE)).text
    assert share.count("Plan the") == 1  # its reset
    assert "all with a start offset" in share
    assert "groupkeeper plan clone --bootstrap-server b:1 " in share
    assert "NEW_GROUP" in share
    assert "kafka-share-groups --bootstrap-server b:1 --describe --group " in share
    assert "kafka-share-groups --bootstrap-server b:1 --delete --group " in share
    assert "kafka-streams-groups" in choices(idle(group_type=GroupType.STREAMS)).text
    held = described(EVIL, member(EVIL, TopicPartition(EVIL, 0)))
    active = choices(view(EVIL, [row(EVIL, 0, 40)], description=held)).text
    assert active.count("held by") == 2
    assert "Plan the deletion of the group" not in active


def test_a_clone_says_how_sure_each_partition_is() -> None:
    one = entry(kind=Kind.CLONE)
    assert "certainty" not in Page(plan_page(one, SOMEBODY, may_change=True)).text
    (group,) = one.plan.groups
    tp, change = next(iter(group.changes.items()))
    plan = one.plan._replace(groups=(group._replace(changes={tp: change._replace(certainty="bounded")}),))
    sure = DeskEntry(EVIL, EVIL, Made(plan), one.fit, (group.group_id,))
    text = Page(plan_page(sure, SOMEBODY, may_change=True)).text
    assert "certainty" in text
    assert "bounded" in text


def test_a_plan_that_fits_and_one_that_does_not() -> None:
    fits = plan_page(entry(), SOMEBODY, may_change=True)
    assert "Nothing is changed yet" in Page(fits).text
    assert " disabled" not in fits
    assert "30 records replayed, 0 skipped" in Page(fits).text
    active = PlanTrouble(EVIL, None, GroupIsActive(EVIL, GroupState.STABLE, [member(EVIL)]))
    stale = PlanTrouble(EVIL, TopicPartition(EVIL, 0), StalePlan(EVIL))
    refused = plan_page(entry(active, stale), SOMEBODY, may_change=True)
    assert ' disabled aria-describedby="why"' in refused
    assert "does not fit" in Page(refused).text
    assert "may not apply the plan" in Page(plan_page(entry(), SOMEBODY, may_change=False)).text


def test_a_plan_of_several_groups_asks_for_their_number() -> None:
    page = plan_page(entry(groups=3), SOMEBODY, may_change=True)
    assert "how many groups are changed (3)" in Page(page).text
    assert 'name="confirm"' not in plan_page(entry(), SOMEBODY, may_change=True)
