"""Changes from the pages of `groupkeeper serve`: resets and deletions of offsets as planned there, and undo."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

from tests.rig.asking import Answer, Desk, Verdict
from tests.rig.facts import Notebook, now
from tests.rig.judges.pages import Line, Page
from tests.rig.judges.plans import Commit, Place, Scenario, idle_groups, plan_row, read_commits
from tests.rig.truth import Truth

NAME = "page changes"
COLUMNS = {"before": "before", "after": "after", "skipped": "skipped", "replayed": "read again",
           "oldest": "log start", "latest": "log end"}  # fmt: skip


class Form(HTMLParser):
    """The fields of the last form that goes to an address."""

    def __init__(self, html: str, action: str) -> None:
        super().__init__()
        self.fields: Line = {}
        self._action = action
        self._is_in = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self._is_in = given.get("action") == self._action
        elif tag == "input" and self._is_in and given.get("type") == "hidden":
            self.fields[given.get("name") or ""] = given.get("value") or ""


class Browser:
    """Somebody who has logged in."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()))
        self.post("/login", {"token": token, "target": "/"})

    def get(self, path: str, **parameters: str) -> str:
        return self._open(f"{path}?{urlencode(parameters)}", None)

    def post(self, path: str, fields: Mapping[str, str]) -> str:
        return self._open(path, urlencode(fields).encode())

    def _open(self, path: str, body: bytes | None) -> str:
        try:
            with self._opener.open(f"http://{self._address}{path}", body, timeout=60) as answer:
                text: str = answer.read().decode()
        except HTTPError as error:
            raise AssertionError(f"{path} gave {error.code}: {error.read().decode()[-700:]}") from None
        return text


def act(desk: Desk, cluster: str, rng: random.Random, truth: Truth, notebook: Notebook) -> Verdict:
    """Makes a plan on the page of a group, applies it and takes it back, while everything rests."""
    verdict = Verdict()
    groups = idle_groups(truth, cluster)
    group = rng.choice(groups) if groups else ""
    before = read_commits(desk.servers[cluster], group) if groups else {}
    if not before:
        verdict.leave(f"{NAME}: no group without members has offsets")
        return verdict
    scenario = Scenario(NAME, desk, cluster, group, verdict, notebook)
    browser = Browser(desk.exporter, desk.token)
    topics = sorted({topic for topic, _ in before})
    form = dict(Form(browser.get("/change", cluster=cluster, group=group), "/plan").fields)
    words = _choose(rng, form, rng.choice(topics))
    asked = now()
    page = browser.post("/plan", form)
    lines = {(line["topic"], int(line["partition"])): line for line in Page(page).tables.get("partitions", ())}
    answer = Answer(cluster, asked, now(), lines, about={"line": words})
    planned = _judge_plan(truth, answer, before, scenario, form)
    sure = sorted(place for place in lines if not truth.logs[cluster, *place].has_unplaced)
    if sure and not verdict.differences:
        other = Verdict()
        worse = copy.deepcopy(lines)
        worse[rng.choice(sure)][rng.choice(sorted(COLUMNS.values())) if words else "before"] = "7,777,777"
        other_scenario = Scenario(NAME, desk, cluster, group, other, notebook)
        _judge_plan(truth, replace(answer, content=worse), before, other_scenario, form)
        verdict.seeded += 1
        verdict.missed += [] if other.differences else [f"{NAME}: a seeded defect in a plan of {group}"]
    scenario.same("before it was applied", read_commits(desk.servers[cluster], group), before)
    after = {place: one for place, one in planned.items() if one is not None}
    if any(before[place][0] != offset for place, offset in after.items()) or None in planned.values():
        page = _apply(browser, page, scenario)
        applied = read_commits(desk.servers[cluster], group)
        kept = {place: one[0] for place, one in before.items() if place not in planned}
        scenario.same("applied", {place: one[0] for place, one in applied.items()}, kept | after)
        scenario.write_down(before, applied)
        at = now()
        if all(truth.logs[cluster, *place].start(at, at).high <= one[0] <= truth.logs[cluster, *place].end(at, at).low
               for place, one in before.items()):  # fmt: skip
            _apply(browser, browser.post("/undo", Form(page, "/undo").fields), scenario)
            undone = read_commits(desk.servers[cluster], group)
            scenario.same("undone", undone, before)
            scenario.write_down(applied, undone)
    return verdict


def _choose(rng: random.Random, form: dict[str, str], topic: str) -> list[str]:
    """Fills in a form. Gives the words of the command that does the same, as ``plan_row`` takes them."""
    form["deed"], form["scope"] = rng.choice(["reset", "reset", "delete-offsets"]), rng.choice(["all", "some"])
    if form["scope"] == "some":
        form["topic"] = topic
    if form["deed"] != "reset":
        return []
    form["to"] = rng.choice(["earliest", "latest", "shift", "offset"])
    value = str({"shift": rng.choice([-7, -1, 3]), "offset": rng.randrange(200)}.get(form["to"], ""))
    if value:
        form[form["to"]] = value
    option = {"shift": "--shift-by", "offset": "--to-offset"}.get(form["to"], f"--to-{form['to']}")
    return ["", "", "", option, value]


def _apply(browser: Browser, page: str, scenario: Scenario) -> str:
    began = now()
    done = browser.post("/plan/apply", Form(page, "/plan/apply").fields)
    scenario.changed = (began, now())
    said = re.search(r'<p class="verdict (\w+)" role="status">([^<]*)', done)
    if said is None or said[1] != "good":
        scenario.differ(f"a plan that was applied says {said and said[2]}")
    return done


def _judge_plan(
    truth: Truth, answer: Answer, before: Mapping[Place, Commit], scenario: Scenario, form: Mapping[str, str]
) -> dict[Place, int | None]:
    """What the page says is to become of each partition; None: it is deleted."""
    lines: dict[Place, Line] = answer.content
    chosen = {place for place in before if form.get("topic", place[0]) == place[0]}
    scenario.same("rows of a plan", dict.fromkeys(lines, 1), dict.fromkeys(chosen, 1))
    planned: dict[Place, int | None] = {}
    for place, line in lines.items():
        log = truth.logs[answer.cluster, *place]
        after = line["after"].replace(",", "")
        planned[place] = None if after == "deleted" else int(after)
        if not answer.about["line"]:
            scenario.same("offset to delete", {place: line["before"]}, {place: f"{before[place][0]:,}"})
            continue
        if log.has_unplaced:
            scenario.verdict.leave(f"{NAME}: offsets of some records were never told")
            continue
        wanted = plan_row(log, answer, answer.about["line"], before[place][0])
        for name, column in COLUMNS.items():
            scenario.same(f"{column} of a plan {form}", {place: line[column]}, {place: f"{wanted[name]:,}"})
    return planned
