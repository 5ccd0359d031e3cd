"""Pages for people: what they say, whatever names are like, and what the URL may ask for."""

import csv
import io
import re
import time
from functools import partial
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.unit.live.views import described, member, row, snapshot, view

from groupkeeper.client.admin.types import GroupState, TopicPartition
from groupkeeper.html import markup
from groupkeeper.live.history import GroupSample, Noted, view_of
from groupkeeper.live.model import (
    NOTHING_WAITS,
    ClusterSnapshot,
    GroupView,
    OtherCluster,
    Scope,
    Stood,
    Wait,
    not_polled,
)
from groupkeeper.operations.problems import MissingAcl, Problem
from groupkeeper.protocol.errors import LeaderNotAvailable
from groupkeeper.web.pages import parts
from groupkeeper.web.pages.cluster import Wish, cluster_page, groups_csv
from groupkeeper.web.pages.fleet import fleet_page
from groupkeeper.web.pages.group import group_page
from groupkeeper.web.pages.judged import sums_of
from groupkeeper.web.pages.partitions import order_of, partitions_csv
from groupkeeper.web.pages.search import search_page
from groupkeeper.web.pages.topics import topic_page, topics_of, topics_page

NOW_MS = 1_700_000_000_000
EVIL = "<script>alert(1)</script>\"'&/?#%00\n\u202eevil=1"
VOID = {"meta", "link", "input"}


class Page(HTMLParser):
    """What a browser makes of it. Fails where tags don't match, where there is something that could run, or where two
    landmarks have the same name. `tables`: the classes and ids of what each is in.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.links: list[str] = []
        self.tables: list[list[str]] = []
        self._open: list[tuple[str, list[str]]] = []
        self._landmarks: set[tuple[str, str | None]] = set()
        assert html.startswith("<!DOCTYPE html>")
        self.feed(html)
        self.close()
        assert self._open == []

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("style", "iframe", "object", "img")
        assert tag != "script" or attrs in ([("src", f"/{name}.js"), ("defer", None)] for name in ("live", "plots"))
        for name, value in attrs:
            assert re.fullmatch("[a-z-]+", name), f"a value that is not escaped ends an attribute before {name}"
            assert not name.startswith("on")
            assert name != "style"
            if name in ("href", "action"):
                assert value is not None
                assert value.startswith(("/", "#"))
                self.links.append(value)
        known = dict(attrs)
        role = known.get("role", {"nav": "navigation", "main": "main", "section": "region"}.get(tag))
        if role in ("navigation", "main") or (role == "region" and "aria-label" in known):
            landmark = (role, known.get("aria-label"))
            assert landmark not in self._landmarks
            self._landmarks.add(landmark)
        if tag not in VOID:
            self._open.append((tag, f"{known.get('class', '')} {known.get('id', '')}".split()))
        if tag == "table":
            self.tables.append([each for _, marks in self._open for each in marks])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def _take(self, data: str) -> None:
        self.texts.append(data)

    handle_data = _take  # what the library calls it


def fleet() -> ClusterSnapshot:
    hidden = Problem("GROUP_AUTHORIZATION_FAILED", "no", "hidden", acl=MissingAcl("DESCRIBE", "GROUP", "hidden"))
    return snapshot(
        view("calm", [row("t", 0, 100)]),
        view("late", [row("t", 0, 40)], [Wait(9 * 60_000)], progress_ms=NOW_MS)._replace(lag_change_per_s=-2.0),
        view("later", [row("t", 0, 0)], [Wait(99 * 60_000)], progress_ms=NOW_MS),
        view("lossy", [row("t", 0, 40, start=50)], [Wait(1000, True, -5000)], progress_ms=NOW_MS),
        view("hidden", problems=(hidden,)),
        at_ms=NOW_MS,
    )


def page(group: GroupView) -> str:
    """The page of a group whose cluster was looked at just now."""
    return Page(group_page(snapshot(group, at_ms=NOW_MS), group, [], [], NOW_MS)).text


def test_a_search_has_what_is_old_apart() -> None:
    last = snapshot(view("late", [row("t", 0, 40)]), cluster="dr")
    down = snapshot(cluster="dr", at_ms=None)._replace(last=last)
    text = Page(search_page([fleet(), down, not_polled("lab")], "late")).text
    now, _, old = text.partition("1 cluster cannot be reached: dr; not polled yet: lab. Last known:")
    assert "2 groups and 0 topics." in now
    assert "1 group and 0 topics." in old


def test_a_group_that_stands_still_tells_why_and_by_which_partition() -> None:
    reader = described("g", member("reader", TopicPartition("t", 0), TopicPartition("t", 1)))
    rows = [row("t", 0, 90), row("t", 1, 40), row("t", 2, 10)]
    group = view("g", rows, [Wait(1000), Wait(33 * 60_000), Wait(1000)], reader, progress_ms=NOW_MS)
    group = group._replace(stood={TopicPartition("t", 1): Stood(40, NOW_MS - 33 * 60_000)})
    text = page(group)
    assert "Why it does not move t-1: offset 40 does not move, and 60 records wait" in text
    assert "t-2: " not in text  # its record waits for a second only
    skip = "groupkeeper plan reset --topic t:1 --shift-by 1 --bootstrap-server HOST:PORT g"
    assert f"this plans to skip it, so that the group never reads it: {skip}" in text
    partitions = text[text.index("Partitions") :]
    assert partitions.index("t 1 stopped the reason 60") < partitions.index("t 0 ok ")
    late = group._replace(waits=[Wait(1000), Wait(33 * 60_000), Wait(9 * 60_000)])
    text = page(late)
    assert "Why it does not move t-2: 90 records wait, and no member is assigned the partition" in text
    assert "t 2 lagging the reason 90" in text[text.index("Partitions") :]
    assert text.count("the reason") == 1
    moving = view("g", [row("t", 0, 90)], [Wait(1000)], reader, progress_ms=NOW_MS)
    assert "Why it does not move" not in page(moving)


def test_what_cannot_be_judged_is_told_in_words_where_it_is_not_so_for_each_group() -> None:
    reader = described("g", member("r", TopicPartition("t", 0)))
    left = described("g", state=GroupState.EMPTY)
    for some in (reader, left):
        assert "not known" not in page(view("g", [row("t", 0, 40)], [Wait(9 * 60_000)], some, progress_ms=NOW_MS))
        unknown = page(view("g", [row("t", 0, 40)], [Wait(None)], some, progress_ms=NOW_MS))
        assert "It may be lagging: since when the next record waits is not known." in unknown


def test_a_member_that_hangs_is_told_once_and_no_record_is_skipped() -> None:
    places = [TopicPartition("t", each) for each in range(4)]
    reader = described("g", member("reader", *places[:3]), member("other", places[3]))
    rows = [row("t", each, 40)._replace(member=reader.members[each == 3]) for each in range(4)]
    group = view("g", rows, [Wait(33 * 60_000)] * 4, reader, progress_ms=NOW_MS)
    since = Stood(40, NOW_MS - 33 * 60_000)

    def why(*stopped: int) -> str:
        stood = {tp: since if tp.partition in stopped else Stood(40, NOW_MS) for tp in places}
        return page(group._replace(stood=stood)).partition("Why it does not move")[2].partition("More, with")[0]

    all_of_it = why(0, 1, 2)
    assert all_of_it.count("does not move") == 1
    assert "all 3 partitions of this member stand still: restart the member, or see what it does" in all_of_it
    assert "groupkeeper groups members" in all_of_it
    assert "2 of 3 of this member stand still" in why(0, 1)
    assert "it is the only partition of this member" in why(3)
    assert [name for name in ("012", "01", "3", "1") if "--shift-by" in why(*map(int, name))] == ["1"]


def test_partitions_are_sorted_and_saved_as_wished() -> None:
    rows = [row("=t", 0, 90), row("t", 1, None), row("t", 2, 10), row("t", 3, 100)]
    group = view("g", rows, [Wait(1000), Wait(None), Wait(9 * 60_000), NOTHING_WAITS], progress_ms=NOW_MS)
    group = group._replace(stood={TopicPartition("t", 2): Stood(10, NOW_MS - 90_000)})
    shown = snapshot(group, at_ms=NOW_MS)

    def saved(**wish: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(partitions_csv(shown, group, order_of(wish)))))

    for wish, partitions in (
        ({}, "2103"),
        ({"sort": "partition"}, "0123"),
        ({"sort": "lag"}, "2031"),  # what isn't known comes last
        ({"sort": "lag", "order": "up"}, "3021"),
        ({"sort": "nonsense", "order": "<b>"}, "2103"),
    ):
        assert "".join(each["partition"] for each in saved(**wish)) == partitions, wish
        page = group_page(shown, group, [], [], NOW_MS, order=order_of(wish))
        text = Page(page).text[Page(page).text.index("Partitions") :]
        at = [text.index(f"t {each} ") for each in partitions]
        assert at == sorted(at), wish
        saves = f"/partitions.csv?cluster=prod&group=g&sort={order_of(wish).sort}"
        assert any(link.startswith(saves) for link in Page(page).links)
    by_place = {each["partition"]: each for each in saved()}
    assert by_place["0"]["topic"] == "'=t"  # no formula
    assert (by_place["2"]["time_lag_s"], by_place["2"]["commits_still_s"]) == ("540.0", "90.0")
    assert by_place["1"]["committed_offset"] == ""


def test_a_group_that_moves_has_no_causes() -> None:
    simple = described("g", state=GroupState.EMPTY)._replace(is_simple=True)
    assert "Why it" not in page(view("g", [row("t", 0, 40)], [Wait(1000)], simple, progress_ms=NOW_MS))
    late = view("g", [row("t", 0, 40)], [Wait(9 * 60_000)], simple, progress_ms=NOW_MS)
    assert "no members, and" not in page(late)
    stopped = page(late._replace(progress_ms=NOW_MS - 3_600_000, waits=[Wait(3_600_000)]))
    assert "Why it does not move t-0: offset 40 does not move, and 60 records wait" in stopped
    left = described("g", state=GroupState.EMPTY)
    done = view(
        "g", [row("t", 0, 98), row("u", 0, 40)], [NOTHING_WAITS, Wait(9 * 60_000)], left, progress_ms=NOW_MS - 3_600_000
    )
    assert "The group has no members, and 60 records wait" in page(done)

    reader = described("g", member("r", TopicPartition("t", 0), subscribed_topics=("t",)))
    unread = view("g", [row("old", 0, 9), row("t", 0, 9)], [Wait(9 * 60_000)] * 2, reader, progress_ms=NOW_MS)
    unread = unread._replace(unread=frozenset({"old"}))
    assert "lagging" in page(unread)
    assert "Why it" not in page(unread)


def test_a_cluster_that_is_down_has_its_last_known_numbers_marked_as_old() -> None:
    why = Problem("CALL_TIMED_OUT", "no answer")
    down = snapshot(at_ms=None, problems=(why,))
    down = down._replace(last=fleet(), polls=down.polls._replace(failing_ms=NOW_MS + 5000))
    late = down.known.groups["late"]
    now_ms = NOW_MS + 3_600_000
    said = (
        "The cluster cannot be reached since 2023-11-14 22:13:25 UTC (59 min 55 s). The numbers below are old: as of "
        "2023-11-14 22:13:20 UTC, 1 h ago."
    )
    for html in (
        fleet_page([down], now_ms),
        cluster_page(down, Wish(), now_ms),
        topics_page(down, {}, now_ms),
        topic_page(down, topics_of(down.known)[0], {}, now_ms),
        group_page(down, late, [], [], now_ms),
    ):
        page = Page(html)
        assert said in page.text
        assert "no answer" in page.text
        assert "Last known:" in page.text
        assert not any(link.startswith(("/groups.csv", "/sweep", "/change")) for link in page.links)
    assert (
        "1 cluster cannot be reached: prod; 3 of 5 groups need attention; the status of 1 is unknown."
        in Page(fleet_page([down], now_ms)).text
    )
    row_of_late = Page(cluster_page(down, Wish("late", sort="group"), now_ms)).text
    assert "lagging late 60 9 min -2.0/s 30 s" in row_of_late  # as it was then: nothing has aged
    never = Page(cluster_page(snapshot(at_ms=None, problems=(why,)), Wish(), now_ms)).text
    assert "The cluster cannot be reached, so nothing is known about its groups now." in never


def test_partitions_without_a_committed_offset_are_unknown_and_counted() -> None:
    rows = [row("t", 0, 100), row("t", 1, None), row("t", 2, None), row("t", 3, None, 100, start=100)]
    some = view("some", [row("t", 0, 40), *rows[1:]], [Wait(90_000), *(Wait(None) for _ in rows[1:])])
    zero, none = view("zero", rows), view("none", rows[1:])
    found = snapshot(some, zero, none, at_ms=NOW_MS)
    text = Page(cluster_page(found, Wish(sort="group"), NOW_MS)).text
    why = "2 partitions with records have no committed offset"
    for said in (
        "unknown some ≥ 60 ≥ 1 min 30 s — — — 0",
        "unknown zero unknown unknown",
        "unknown none unknown unknown",
    ):
        assert said in text
    assert text.count(why) == 3
    assert "partitions without a committed offset 6" in Page(fleet_page([found], NOW_MS)).text
    text = Page(group_page(found, zero, [], [], NOW_MS)).text
    assert f"{why} . How many of these records wait is unknown" in text.replace("offset.", "offset .")
    assert "uncommitted 200 records in 3 partitions" in text
    assert "t 1 unknown unknown unknown unknown — none 0 100 uncommitted" in text
    assert "t 3 ok — — — — none 100 100 uncommitted" in text
    [_, csv_row, _] = csv.DictReader(io.StringIO(groups_csv(found, Wish(sort="group"))))
    assert (csv_row["status"], csv_row["uncommitted_partitions"], csv_row["uncommitted"]) == ("unknown", "3", "200")


def test_records_of_the_lag_that_are_gone_are_told_apart() -> None:
    rows = [row("t", 0, 40, start=70), row("t", 1, 90), row("t", 2, 5, 100, start=100)]
    group = view("lossy", rows, [Wait(5000), Wait(1000), Wait(0)])
    found = snapshot(group, at_ms=NOW_MS)
    assert "165 (125 lost)" in Page(cluster_page(found, Wish(), NOW_MS)).text
    fleet_text = Page(fleet_page([found], NOW_MS)).text
    assert "records to read 165 125 lost" in fleet_text
    assert "lost 125 records" in fleet_text
    text = Page(group_page(found, group, [], [], NOW_MS)).text
    assert "lag 165 records lost 125 records readable 40 records" in text
    assert "t 0 losing the reason 60 30 30 5 s — — 40 70 100 below log start" in text
    assert "t 1 ok 10 0 10 1 s — — 90 0 100 ok" in text
    assert "t 2 losing 95 95 0 0 s — — 5 100 100 below log start" in text
    assert "165 5 s — 125 40" in Page(topic_page(found, topics_of(found)[0], {}, NOW_MS)).text
    [csv_row] = csv.DictReader(io.StringIO(groups_csv(found, Wish())))
    assert [csv_row[name] for name in ("lag", "lost", "readable", "uncommitted")] == ["165", "125", "40", "0"]
    unknown = snapshot(view("dark", [row("t", 0, 40)._replace(lost=None)], [Wait(5000)]), at_ms=NOW_MS)
    assert (topics_of(unknown)[0].lost, sums_of(unknown).lost, sums_of(snapshot()).lost) == (None, None, 0)
    calm = view("calm", [row("t", 0, 40)], [Wait(5000)])
    assert "lost" not in page(calm)


def test_a_name_that_went_to_another_cluster_is_told_for_a_day() -> None:
    new = fleet()._replace(replaced=OtherCluster(EVIL, NOW_MS - 1000), cluster_id="new-id")
    said = "Since 2023-11-14 22:13:19 UTC prod is another cluster, with the id new-id; before, it was"
    for html in (fleet_page([new], NOW_MS), cluster_page(new, Wish(), NOW_MS), topics_page(new, {}, NOW_MS)):
        assert said in Page(html).text
    assert "another cluster" not in cluster_page(new, Wish(), NOW_MS + 24 * 3_600_000)


def test_what_the_history_has_of_a_cluster_that_cannot_be_reached() -> None:
    noted = view_of("g", GroupSample(NOW_MS, "Stable", 3, 60, 90_000, 40, NOW_MS))
    last = snapshot(noted, at_ms=NOW_MS)._replace(is_partial=True, brokers=())
    down = snapshot(at_ms=None)._replace(last=last)
    assert "ok g 60 1 min 30 s — — — 3 — Stable" in Page(cluster_page(down, Wish(), NOW_MS)).text
    assert "brokers" not in Page(fleet_page([down], NOW_MS)).text
    page = Page(group_page(down, noted, [], [], NOW_MS)).text
    assert "Partitions They are not in the history, from which these numbers come." in page
    assert "Its members are not known now." in page
    assert "They are not in the history" in Page(topics_page(down, {}, NOW_MS)).text


def test_what_is_left_out_is_counted_and_said() -> None:
    some = fleet()._replace(scope=Scope(("a", "b"), (f"--group '{EVIL}'",), are_topics_chosen=True))
    for page in (
        Page(fleet_page([some], NOW_MS)),
        Page(cluster_page(some, Wish(), NOW_MS)),
        Page(topics_page(some, {}, NOW_MS)),
    ):
        assert "2 other groups of the cluster are left out (--group, --except-group)." in page.text
        assert f"Nothing here matches --group '{' '.join(EVIL.split())}'" in " ".join(page.text.split())
        assert "Numbers cover the chosen topics only" in page.text
    assert "Numbers cover the chosen topics only" in Page(group_page(some, some.groups["calm"], [], [], NOW_MS)).text
    none = snapshot()._replace(scope=Scope(("a",)))
    assert "All groups of the cluster are left out." in Page(cluster_page(none, Wish(), NOW_MS)).text
    assert "left out" not in Page(cluster_page(fleet(), Wish(), NOW_MS)).text


def listed(**wish: object) -> list[str]:
    """The groups of the list, in its order."""
    page = Page(cluster_page(fleet(), Wish(**wish), NOW_MS))  # type: ignore[arg-type]
    links = [parse_qs(urlsplit(link).query) for link in page.links if link.startswith("/group?")]
    return [link["group"][0] for link in links]


def test_the_list_is_sorted_and_narrowed_down_by_the_url() -> None:
    assert listed() == ["lossy", "later", "late", "hidden", "calm"]
    assert listed(sort="lag") == ["later", "late", "lossy", "calm", "hidden"]
    assert listed(sort="lag", order="up") == ["calm", "late", "lossy", "later", "hidden"]  # not known: last, always
    assert listed(sort="group") == ["calm", "hidden", "late", "later", "lossy"]
    assert listed(sort="margin") == ["lossy", "calm", "hidden", "late", "later"]
    assert listed(text="LATE", sort="group") == ["late", "later"]
    assert listed(status="losing") == ["lossy"]
    assert listed(state="Empty") == []


@pytest.mark.parametrize(
    "sort", ["status", "group", "type", "state", "lag", "time_lag", "lag_change", "catch_up", "margin", "members"]
)
@pytest.mark.parametrize("order", ["up", "down"])
def test_every_order(sort: str, order: str) -> None:
    assert len(listed(sort=sort, order=order)) == 5


def test_a_wish_may_be_anything() -> None:
    for parameters in (
        {"sort": EVIL, "order": EVIL, "page": EVIL, "q": EVIL, "status": EVIL},
        {"page": "²"},
        {"page": "0"},
    ):
        wish = Wish.of(parameters)
        page = Page(cluster_page(fleet(), wish, NOW_MS))
        assert "of 5" in page.text
    assert Wish.of({"sort": "lag", "order": "up", "page": "7", "q": "x"}) == Wish("x", sort="lag", order="up", page=7)


def test_what_a_row_says() -> None:
    text = Page(cluster_page(fleet(), Wish(), NOW_MS)).text
    assert "missing ACL: DESCRIBE on group hidden" in text
    assert "No group matches. Show all groups" in Page(cluster_page(fleet(), Wish("nowhere"), NOW_MS)).text
    assert "There are no groups." in Page(cluster_page(snapshot(), Wish(), NOW_MS)).text
    assert "−5 s" in text  # the margin is gone
    assert "~ 1 s" in text  # interpolated
    assert "-2.0/s 30 s" in text  # 60 records at 2 a second
    assert "9 min" in text


def test_pages_are_turned() -> None:
    many = snapshot(*(view(f"g{number:04}", [row("t", 0, 5)]) for number in range(250)))
    pages = [Page(cluster_page(many, Wish(sort="group", page=number), NOW_MS)) for number in (1, 2, 3, 99)]
    assert [page.text.count(" g0") for page in pages] == [100, 100, 50, 50]
    assert "page 1 of 3" in pages[0].text
    assert "page 3 of 3" in pages[3].text
    assert any("page=2" in link and "sort=group" in link for link in pages[0].links)


def test_csv_has_all_and_no_formula() -> None:
    odd = snapshot(view("=cmd()", [row("t", 0, 5)], [Wait(1500)]), view(EVIL), cluster="prod")
    rows = list(csv.DictReader(io.StringIO(groups_csv(odd, Wish(sort="group")))))
    assert [each["group"] for each in rows] == [EVIL, "'=cmd()"]
    odd = snapshot(view("two\rlines"), cluster="prod")
    assert groups_csv(odd, Wish()).splitlines(keepends=True)[1:][:1] == ['prod,"two\r']
    assert (rows[1]["lag"], rows[1]["time_lag_s"], rows[1]["retention_margin_s"]) == ("95", "1.5", "")
    assert len(list(csv.DictReader(io.StringIO(groups_csv(fleet(), Wish(status="lagging")))))) == 2


def test_how_commits_went_on() -> None:
    """40 offsets, a rewind that counts for nothing, and 5 more; samples of which it isn't known say nothing."""
    committed = [100, 140, None, 20, 25]
    samples = [
        GroupSample(NOW_MS + number * 60_000, "Stable", 1, 0, 0, each, None) for number, each in enumerate(committed)
    ]
    group = view("g", [row("t", 0, 40)])
    text = group_page(snapshot(group), group, samples, [], NOW_MS)
    assert [each for each in (">40<", 'data-unit="offsets"', ":40 ", ':5"') if each not in text] == []
    assert text.count('class="bar"') == 2
    assert "in each 1 minute" in text
    longer = [each._replace(at_ms=NOW_MS + number * 7_200_000) for number, each in enumerate(samples)]
    assert "in each 9 minutes" in group_page(snapshot(group), group, longer, [], NOW_MS)
    assert 'class="bar"' not in group_page(snapshot(group), group, samples[:1], [], NOW_MS)


def test_a_group() -> None:
    first, second, third = (TopicPartition("t", number) for number in range(3))
    moving = member("a", first, second, target_assignment=(first,), member_epoch=6)
    settled = member("b", third, target_assignment=(third,), member_epoch=7)
    rows = [row("t", 0, 40), row("t", 1, 90), row("t", 2, 5, None)._replace(failure=LeaderNotAvailable())]
    group = view("g", rows, [Wait(5000), Wait(1000, True), Wait(None)], described("g", moving, settled, epoch=7))
    samples = [GroupSample(NOW_MS - 5000 * number, "Stable", 2, 10 * number, 0, 0, 0) for number in (3, 2, 1)]
    changes = [Noted(NOW_MS - 5000, "member_joined", "b-id", None, "t-2")]
    page = Page(group_page(snapshot(group, at_ms=NOW_MS), group, samples, changes, NOW_MS))
    assert "t: 0, 1 t: 0" in page.text  # what it has, what it is to have
    assert "as assigned" in page.text
    assert "LeaderNotAvailable" in page.text
    assert "≥ 5 s" in page.text
    assert "~ 1 s" in page.text
    assert "member joined" in page.text
    assert "70 35 0" in page.text  # the top of the plot is the lag of now
    assert page.links[1:3] == ["/", "/cluster?cluster=prod"] or "/cluster?cluster=prod" in page.links


def test_names_are_text_wherever_they_stand() -> None:
    consumer = member(EVIL, TopicPartition(EVIL, 0), target_assignment=())
    problem = Problem("X", EVIL, EVIL, EVIL, 0, acl=MissingAcl("READ", "TOPIC", EVIL))
    group = view(EVIL, [row(EVIL, 0, 5)], [Wait(99 * 60_000)], described(EVIL, consumer, epoch=1), problems=(problem,))
    evil = snapshot(group, cluster=EVIL, at_ms=NOW_MS, problems=(problem,))
    changes = [Noted(NOW_MS, EVIL, EVIL, EVIL, EVIL)]
    wish = Wish.of({"q": EVIL, "status": EVIL, "type": EVIL, "state": EVIL})
    for html in (
        fleet_page([evil, snapshot(cluster=EVIL, at_ms=None, problems=(problem,))], NOW_MS),
        cluster_page(evil, Wish(), NOW_MS),
        cluster_page(evil, wish, NOW_MS),
        group_page(evil, group, [], changes, NOW_MS),
    ):
        page = Page(html)
        assert html.count("\u202e") <= 2 * html.count('name="q"')  # what was typed, and what the form sends
        for link in page.links:
            asked = parse_qs(urlsplit(link).query)
            assert asked.get("cluster", [EVIL]) == [EVIL]
            assert asked.get("group", [EVIL]) == [EVIL]


def test_two_tables_of_one_name_are_no_landmarks_of_the_same_name() -> None:
    table = markup.table([markup.PageColumn[str]("member", str)], ["m-1"], "members")
    assert Page(parts.page("Two", table + table)).text.count("m-1") == 2


@pytest.mark.slow
def test_ten_thousand_groups_are_soon_there() -> None:
    many = snapshot(*(view(f"g{number}", [row("t", 0, number % 100)], [Wait(number)]) for number in range(10_000)))
    pages = (partial(fleet_page, [many], NOW_MS), partial(cluster_page, many, Wish(sort="lag"), NOW_MS))
    for write in pages:
        began = time.process_time()
        assert len(write()) < 200_000
        assert time.process_time() - began < 4  # of each with each: minutes
