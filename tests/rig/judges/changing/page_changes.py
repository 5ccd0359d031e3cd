"""Changes from the pages of `groupkeeper serve`: resets, deletions, clones and sweeps as planned there, and undo.

After each change the journal has it, and a consumer of the group reads on: it must find what the plan said.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import count

from tests.rig.asking import Answer, Desk, Verdict
from tests.rig.facts import Notebook, now
from tests.rig.judges import clone as judge_clone
from tests.rig.judges.changing import journal, reading, share_groups
from tests.rig.judges.changing.browser import Browser, Form
from tests.rig.judges.changing.journal import Change
from tests.rig.judges.changing.reading import Figures, Reads
from tests.rig.judges.clone import Copied
from tests.rig.judges.exporter import CHANGER, VIEWER
from tests.rig.judges.pages import Line, Page
from tests.rig.judges.plans import Commit, Place, Scenario, idle_groups, literal, plan_row, read_commits
from tests.rig.story import Story
from tests.rig.truth import Truth

NAME = "page changes"
COLUMNS = {"before": "before", "after": "after", "skipped": "skipped", "replayed": "read again",
           "log_start_offset": "log start", "log_end_offset": "log end"}  # fmt: skip
MOST_READ = 40
"""Of so many partitions it is looked at what is read."""
MOST_OF_A_MEMBER = 60
"""A group of more partitions is read on by a consumer that assigns some to itself."""

_numbers = count(1)

Lines = dict[Place, Line]
Commits = Mapping[Place, Commit]
Wrong = Callable[..., Iterable[str]]
"""What is wrong with what was read."""


class Visit:
    """One group, changed by somebody who may."""

    def __init__(
        self, desk: Desk, cluster: str, group: str, rng: random.Random, truth: Truth, notebook: Notebook,
        verdict: Verdict,
    ) -> None:  # fmt: skip
        self.desk = desk
        self.cluster = cluster
        self.group = group
        self.rng = rng
        self.truth = truth
        self.notebook = notebook
        self.verdict = verdict
        self.scenario = Scenario(NAME, desk, cluster, group, verdict, notebook)
        self.browser = Browser(desk.exporter, desk.token)

    @property
    def servers(self) -> str:
        return self.desk.servers[self.cluster]

    def commits(self) -> dict[Place, Commit]:
        return read_commits(self.servers, self.group)

    def elsewhere(self, cluster: str, group: str) -> Visit:
        """The same visitor, at another group."""
        other = Visit(self.desk, cluster, group, self.rng, self.truth, self.notebook, self.verdict)
        other.browser = self.browser  # forms are sealed for a session
        return other

    def form(self) -> dict[str, str]:
        """The hidden fields of a form of its page of changes."""
        page = self.browser.wait_for("/change", 'name="deed"', cluster=self.cluster, group=self.group)
        return Form(page, "/plan").fields

    def seed(self, what: str, found: Iterable[str]) -> None:
        """A defect that was put in must be found."""
        self.verdict.seeded += 1
        if not any(found):
            self.verdict.missed.append(f"{NAME}: {what}, of {self.group}")

    def judge(self, found: Iterable[str], comparisons: int) -> bool:
        """Whether nothing is wrong."""
        self.verdict.comparisons += comparisons
        texts = list(found)
        for text in texts:
            self.scenario.differ(text)
        return not texts

    def plan(self, path: str, form: Mapping[str, str]) -> tuple[str, Lines, Answer]:
        """Sends a form; its page, the lines of that, and when it was asked."""
        asked = now()
        page = self.browser.post(path, form)
        lines = {(line["topic"], int(line["partition"])): line for line in Page(page).tables.get("partitions", ())}
        return page, lines, Answer(self.cluster, asked, now(), lines)

    def apply(
        self, page: str, before: Commits, kind: str, again: Collection[Place] = ()
    ) -> tuple[str, str, Commits]:  # fmt: skip
        """Applies a plan; its page then, the id of the change, and what is committed. `again`: what is committed
        there once more.
        """
        began = now()
        done = self.browser.post("/plan/apply", Form(page, "/plan/apply").fields)
        self.scenario.changed = (began, now())
        said = re.search(r'<p class="banner (\w+)" role="status">([^<]*)', done)
        if said is None or said[1] != "good":
            self.scenario.differ(f"a plan that was applied says {said and said[2]}")
        applied = self.commits()
        self.scenario.write_down({place: one for place, one in before.items() if place not in again}, applied)
        found = re.search(r"<dt>change in the journal</dt><dd>([^<]+)", done)
        change_id = found[1] if found else ""
        self.look_at_journal(change_id, kind, before, applied)
        return done, change_id, applied

    def undo(self, page: str, change_id: str, kind: str, before: Commits, applied: Commits) -> None:
        """Takes the change back, byte for byte."""
        _page, undo_id, undone = self.apply(
            self.browser.post("/undo", Form(page, "/undo").fields), applied, "undo")  # fmt: skip
        self.scenario.same("undone", undone, before)
        self.look_at_journal(change_id, kind, before, applied, undo_id)

    def look_at_journal(
        self, change_id: str, kind: str, before: Commits, applied: Commits, undone_by: str = ""
    ) -> None:
        if not change_id:
            self.scenario.differ("what was applied is not in the journal")
            return
        offsets = {place: (_offset(before, place), _offset(applied, place)) for place in {*before, *applied}}
        change = Change(change_id, kind, CHANGER, self.cluster, self.group, offsets, undone_by)
        told = journal.look(self.browser, change)
        if self.judge(journal.differences(told, change), 6 + len(offsets)):
            what, worse = self.rng.choice(list(journal.spoilt(told)))
            is_none = what == "a partition too few" and not _has_moved(offsets)
            if not is_none:
                self.seed(f"the journal has {what}", journal.differences(worse, change))

    def read_on(
        self, before: Commits | None, applied: Commits, figures: Mapping[Place, Figures], places: Collection[Place],
        *, as_member: bool = False,
    ) -> None:  # fmt: skip
        """A consumer of the group reads on from what is committed now. `before` None: there was nothing before."""
        began = now()
        if as_member and len(places) <= MOST_OF_A_MEMBER:
            reads = reading.read_on_as_member(self.servers, self.cluster, self.group, places, self.notebook)
        else:
            chosen = self.rng.sample(sorted(places), min(MOST_READ, len(places)))
            reads = reading.read_on(self.servers, self.cluster, self.group, chosen, self.notebook)
        self.judge_reads(reads, before, applied, figures, began)

    def judge_reads(
        self, reads: Reads, before: Commits | None, applied: Commits, figures: Mapping[Place, Figures], began: int
    ) -> None:
        """`began`: when the reading did."""
        at = now()
        sure: list[tuple[Place, Wrong]] = []
        for place, some in sorted(reads.items()):
            log = self.truth.logs[self.cluster, *place]
            if log.has_unplaced or self.truth.is_compacted_topic(self.cluster, place[0]):
                self.verdict.leave(f"{NAME}: what is read of compacted topics, or where offsets were never told")
                continue
            offsets = (_offset(each, place) for each in (before or {}, applied))
            if any(one is not None and one > log.end(began, began).low for one in offsets):
                self.verdict.leave(f"{NAME}: what is read after an offset beyond the end of its log")
                continue
            first = None if before is None else reading.position(log, _offset(before, place), at)
            then = reading.position(log, _offset(applied, place), at)
            said = figures.get(place, Figures())

            wrong: Wrong = partial(reading.differences, log, before=first, after=then, said=said)
            texts = [f"read on {place}: {text}" for text in wrong(reads=some)]
            if self.judge(texts, 3):
                sure.append((place, wrong))
            if said.skipped is not None and not texts:
                off = said._replace(skipped=said.skipped + 1)
                if first is not None and self.rng.random() < 0.2:
                    self.seed("a plan skips more than is read", reading.differences(log, some, first, then, off))
        if sure:
            place, wrong = self.rng.choice(sure)
            for what, worse in reading.spoilt(reads[place], self.rng.randrange):
                self.seed(f"a reading in which there is {what}", wrong(reads=worse))


def _has_moved(offsets: Mapping[Place, tuple[int | None, int | None]]) -> bool:
    """Whether all that are in the journal were changed: leaving any of them out is seen."""
    return all(before != after for before, after in offsets.values())


def _offset(commits: Commits, place: Place) -> int | None:
    return commits[place][0] if place in commits else None


def _number(text: str) -> int | None:
    return None if text in ("—", "none", "deleted") else int(text.replace(",", ""))


def _figures(lines: Lines) -> dict[Place, Figures]:
    return {place: Figures(_number(line["skipped"]), _number(line["read again"])) for place, line in lines.items()}


def act(
    desk: Desk, story: Story, cluster: str, rng: random.Random, truth: Truth, notebook: Notebook
) -> Verdict:  # fmt: skip
    """Makes a plan on a page, applies it, reads on, and takes it back, while everything rests."""
    verdict = Verdict()
    deed = desk.next_deed(cluster, list(DEEDS), rng)
    if deed == "share reset":
        share_groups.reset(desk, cluster, rng, truth, verdict)
        return verdict
    groups = _mirrored(story, cluster, truth) if deed == "clone elsewhere" else idle_groups(truth, cluster)
    group = rng.choice(groups) if groups else ""
    before = read_commits(desk.servers[cluster], group) if groups else {}
    if not before:
        verdict.leave(f"{NAME}: no group without members has offsets")
        return verdict
    visit = Visit(desk, cluster, group, rng, truth, notebook, verdict)
    _refuse(visit, before)
    verdict.counts[f"changes from pages: {deed}"] += 1
    DEEDS[deed](visit, story, before)
    return verdict


def _mirrored(story: Story, cluster: str, truth: Truth) -> list[str]:
    """Groups of topics that the other cluster has copies of, in as many partitions."""
    idle = set(idle_groups(truth, cluster))
    return sorted(one.group for one, writer in judge_clone.mirrored(story) if one.cluster == cluster
                  and one.group in idle and writer.mirror and not writer.mirror.partitions)  # fmt: skip


def _refuse(visit: Visit, before: Commits) -> None:
    """Who may only look is shown no form, and what such a person sends changes nothing."""
    viewer = Browser(visit.desk.exporter, visit.desk.view_token)
    visit.browser.wait_for("/change", 'name="deed"', cluster=visit.cluster, group=visit.group)
    page = viewer.get("/change", cluster=visit.cluster, group=visit.group)
    form = visit.form() | {"deed": "delete-offsets", "scope": "all"}
    status, said = viewer.ask("/plan", form)
    wrong = []
    if 'name="deed"' in page or f"{VIEWER} has no role" not in page:
        wrong.append("who may only look is shown forms, or not why there are none")
    if status != 403:
        wrong.append(f"who may only look got {status} for a plan: {said[-200:]}")
    visit.judge(wrong, 2)


def _reset_or_delete(visit: Visit, _: Story, before: Commits) -> None:
    form = visit.form()
    words = _choose(visit, form, before)
    page, lines, answer = visit.plan("/plan", form)
    answer = replace(answer, about={"line": words})
    planned = _judge_plan(visit, answer, before, form)
    sure = sorted(place for place in lines if not visit.truth.logs[visit.cluster, *place].has_unplaced)
    if sure and not visit.verdict.differences:
        worse = copy.deepcopy(lines)
        column = visit.rng.choice(sorted(COLUMNS.values())) if words else "before"
        worse[visit.rng.choice(sure)][column] = "7,777,777"
        other = visit.elsewhere(visit.cluster, visit.group)
        other.verdict = other.scenario.verdict = Verdict()
        _judge_plan(other, replace(answer, content=worse), before, form)
        visit.seed("a wrong number in a plan", [one.text for one in other.verdict.differences])
    visit.scenario.same("before it was applied", visit.commits(), before)
    after = {place: one for place, one in planned.items() if one is not None}
    if all(before[place][0] == offset for place, offset in after.items()) and None not in planned.values():
        return
    kind = "reset" if words else "delete-offsets"
    page, change_id, applied = visit.apply(page, before, kind)
    kept = {place: one[0] for place, one in before.items() if place not in planned}
    visit.scenario.same("applied", {place: one[0] for place, one in applied.items()}, kept | after)
    visit.read_on(before, applied, _figures(lines) if words else {}, lines)
    if _is_inside(visit, before):
        visit.undo(page, change_id, kind, before, applied)
        visit.read_on(before, before, {}, lines)


def _is_inside(visit: Visit, commits: Commits) -> bool:
    """Whether the logs hold all of it: else an undo refuses."""
    at = now()
    logs = {place: visit.truth.logs[visit.cluster, *place] for place in commits}
    return all(logs[place].start(at, at).high <= one[0] <= logs[place].end(at, at).low
               for place, one in commits.items())  # fmt: skip


def _choose(visit: Visit, form: dict[str, str], before: Commits) -> list[str]:
    """Fills in a form. Gives the words of the command that does the same, as `plan_row` takes them."""
    rng = visit.rng
    form["deed"], form["scope"] = rng.choice(["reset", "reset", "delete-offsets"]), rng.choice(["all", "some"])
    if form["scope"] == "some":
        topic = rng.choice(sorted({topic for topic, _ in before}))
        partitions = sorted(partition for name, partition in before if name == topic)
        made = visit.truth.topics[visit.cluster, topic]
        if len(partitions) == made.partitions:
            form["topic"] = topic
        else:  # those of which something is committed
            form["more"] = f"{topic}:{','.join(map(str, partitions))}"
    if form["deed"] != "reset":
        return []
    form["to"] = rng.choice(["earliest", "latest", "shift", "offset"])
    value = str({"shift": rng.choice([-7, -1, 3]), "offset": rng.randrange(200)}.get(form["to"], ""))
    if value:
        form[form["to"]] = value
    option = {"shift": "--shift-by", "offset": "--to-offset"}.get(form["to"], f"--to-{form['to']}")
    return ["", "", "", option, value]


def _judge_plan(visit: Visit, answer: Answer, before: Commits, form: Mapping[str, str]) -> dict[Place, int | None]:
    """What the page says is to become of each partition; None: it is deleted."""
    lines: Lines = answer.content
    topic = form.get("topic") or form.get("more", "").partition(":")[0]
    chosen = {place for place in before if not topic or place[0] == topic}
    same = visit.scenario.same
    same("rows of a plan", dict.fromkeys(lines, 1), dict.fromkeys(chosen, 1))
    planned: dict[Place, int | None] = {}
    for place, line in lines.items():
        log = visit.truth.logs[visit.cluster, *place]
        planned[place] = _number(line["after"])
        if place not in before:
            continue
        if not answer.about["line"]:
            same("offset to delete", {place: line["before"]}, {place: f"{before[place][0]:,}"})
            continue
        if log.has_unplaced:
            visit.verdict.leave(f"{NAME}: offsets of some records were never told")
            continue
        wanted = plan_row(log, answer, answer.about["line"], before[place][0])
        for name, column in COLUMNS.items():
            same(f"{column} of a plan {form}", {place: line[column]}, {place: f"{wanted[name]:,}"})
    return planned


def _delete_group(visit: Visit, _: Story, before: Commits) -> None:
    """The group goes with its offsets, and an undo brings it back."""
    page, lines, _answer = visit.plan("/plan", visit.form() | {"deed": "delete"})
    _judge_lines(visit, lines, before, dict.fromkeys(before))
    page, change_id, applied = visit.apply(page, before, "delete-groups")
    visit.scenario.same("deleted", applied, {})
    visit.scenario.is_there(False)
    visit.read_on(before, applied, {}, lines)
    if _is_inside(visit, before):
        visit.undo(page, change_id, "delete-groups", before, applied)
        visit.scenario.is_there(True)
        visit.read_on(before, before, {}, lines)


def _sweep(visit: Visit, _: Story, before: Commits) -> None:
    """Of one group, what is idle is deleted, or what expires within eight days is committed again: all of it."""
    cleared = visit.browser.get("/sweep", cluster=visit.cluster)
    is_idle = visit.rng.random() < 0.6
    what = {"idle": "1s"} if is_idle else {"expiring": "8d"}
    form = Form(cleared, "/sweep").fields | {"groups": literal(visit.group), **what}
    page, lines, _answer = visit.plan("/sweep", form)
    at = now()
    wanted = {place: None if is_idle else one[0] for place, one in before.items()
              if is_idle or _is_in_log(visit, place, one[0], at)}  # fmt: skip
    _judge_lines(visit, lines, {place: before[place] for place in wanted}, wanted)
    if not wanted:
        return
    page, change_id, applied = visit.apply(page, before, "sweep", () if is_idle else wanted)
    left = {place: one for place, one in before.items() if not is_idle}
    visit.scenario.same("swept", applied, left)
    visit.read_on(before, applied, {}, lines)
    if is_idle and _is_inside(visit, before):
        visit.undo(page, change_id, "sweep", before, applied)
        visit.read_on(before, before, {}, lines)


def _is_in_log(visit: Visit, place: Place, offset: int, at: int) -> bool:
    log = visit.truth.logs[visit.cluster, *place]
    return log.start(at, at).low <= offset <= log.end(at, at).high


def _judge_lines(visit: Visit, lines: Lines, before: Commits, after: Mapping[Place, int | None]) -> None:
    def wrong(lines: Lines) -> Iterable[str]:
        for place in sorted(lines.keys() | after.keys()):
            then = after.get(place)
            wanted = (
                "none" if place not in before else f"{before[place][0]:,}",
                "deleted" if then is None else f"{then:,}",
            )
            found = (lines[place]["before"], lines[place]["after"]) if place in lines else None
            if found != wanted or place not in after:
                yield f"a plan has {place} from and to {found}, truth {wanted if place in after else 'it is not in it'}"

    if visit.judge(wrong(lines), 2 * len(after)) and lines:
        place = visit.rng.choice(sorted(lines))
        visit.seed("another offset in a plan", wrong({**lines, place: {**lines[place], "before": "7,777,777"}}))
        visit.seed("a partition too few in a plan", wrong({key: one for key, one in lines.items() if key != place}))


def _clone_here(visit: Visit, _: Story, before: Commits) -> None:
    """Another group of the cluster gets the same offsets, byte for byte; it is deleted in the end."""
    if not _is_inside(visit, before):
        visit.verdict.leave(f"{NAME}: a clone of offsets outside of their logs, which a plan moves to the nearer end")
        return
    target = visit.elsewhere(visit.cluster, f"{visit.group[:50]}-copy-{next(_numbers)}")
    form = visit.form() | {"deed": "clone", "scope": "all", "to-cluster": visit.cluster, "to-group": target.group}
    page, lines, _answer = target.plan("/plan", form)
    _judge_lines(target, lines, {}, {place: one[0] for place, one in before.items()})
    page, _change_id, applied = target.apply(page, {}, "clone")
    target.scenario.same("cloned", applied, before)
    target.read_on(None, applied, {}, lines, as_member=True)
    _delete_clone(target, applied)


def _clone_elsewhere(visit: Visit, story: Story, before: Commits) -> None:
    """A group of the other cluster goes on in the copies of the topics where this one stands."""
    (writer,) = {writer for one, writer in judge_clone.mirrored(story)
                 if (one.cluster, one.group) == (visit.cluster, visit.group)}  # fmt: skip
    assert writer.mirror is not None
    target = visit.elsewhere(writer.mirror.cluster, f"{visit.group}-copy-{next(_numbers)}")
    form = visit.form() | {"deed": "clone", "scope": "all", "to-cluster": target.cluster, "to-group": target.group}
    page, lines, answer = target.plan("/plan", form)
    rows = [_as_row(place, line) for place, line in lines.items()]
    about = Copied(visit.cluster, visit.group, writer.topic, f"{writer.topic} {writer.mirror}").about
    answer = replace(answer, content={"changes": rows, "problems": []}, about=about)
    found = judge_clone.judge(visit.truth, answer)
    visit.judge((one.text for one in found.differences), found.comparisons)
    if not found.differences:
        for what, worse in judge_clone.spoilt(visit.truth, answer, visit.rng):
            visit.seed(f"{what} in a clone", (one.text for one in judge_clone.judge(visit.truth, worse).differences))
    page, _change_id, applied = target.apply(page, {}, "clone")
    wanted = {place: _number(line["after"]) for place, line in lines.items()}
    target.scenario.same("cloned", {place: one[0] for place, one in applied.items()}, wanted)
    target.read_on(None, applied, {}, lines, as_member=True)
    _delete_clone(target, applied)


def _as_row(place: Place, line: Line) -> dict[str, object]:
    """A line as the command has it."""
    return {
        "topic": place[0], "partition": place[1], "after": _number(line["after"]),
        "log_end_offset": _number(line["log end"]),
        "skipped": _number(line["skipped"]), "replayed": _number(line["read again"]),
        "certainty": line.get("certainty") or None, "why": line["why"],
    }  # fmt: skip


def _delete_clone(target: Visit, applied: Commits) -> None:
    target.browser.wait_for("/change", "Plan the deletion of the group", cluster=target.cluster, group=target.group)
    page, lines, _answer = target.plan("/plan", target.form() | {"deed": "delete"})
    _judge_lines(target, lines, applied, dict.fromkeys(applied))
    target.apply(page, applied, "delete-groups")
    target.scenario.is_there(False)


DEEDS: dict[str, Callable[[Visit, Story, Commits], None]] = {
    "reset or delete offsets": _reset_or_delete,
    "clone elsewhere": _clone_elsewhere,
    "clone here": _clone_here,
    "sweep": _sweep,
    "delete group": _delete_group,
    "share reset": lambda visit, story, before: None,
}
