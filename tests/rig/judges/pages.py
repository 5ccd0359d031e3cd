"""The pages of `groupkeeper serve`, read as a viewer reads them: as series, they are judged as those of the exporter.

All pages of one answer are of one poll, whose instant they state. What a page shows twice, or another page too, must
be the same there; what the workers don't know (epochs, types, rebalances) must be what the exporter tells of that poll.
"""

import copy
import csv
import io
import random
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from operator import itemgetter
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.rig.asking import Answer, Desk, Difference, Verdict
from tests.rig.facts import now
from tests.rig.judges import exporter as judge_exporter
from tests.rig.judges import followed
from tests.rig.judges.exporter import (
    BY_STATUS,
    COMMITTED,
    ESTIMATED,
    INFO,
    LAG,
    LOG_END,
    LOG_START,
    MARGIN,
    MEASURED,
    MEMBER_PARTITIONS,
    MEMBERS,
    PARTITION_LAG,
    PARTITION_SECONDS,
    PATIENCE_S,
    PROBLEM,
    SECONDS,
    TASKS,
    UNKNOWN,
    Series,
    agrees,
)
from tests.rig.judges.followed import Looked, Own, Watched
from tests.rig.truth import Truth

NAME = "pages"
PARTITIONS = "groupkeeper_group_partitions"
MAX_LAG = "groupkeeper_group_max_lag"
LOST = "groupkeeper_group_lost"
UNCOMMITTED = "groupkeeper_group_uncommitted"
ON_IT = "groupkeeper_group_assigned_members"
EPOCH = "groupkeeper_group_epoch"
TARGET = "groupkeeper_group_target_epoch"
REBALANCES = "groupkeeper_group_rebalances_total"
GROUP_STATUS = "groupkeeper_group_status"
PARTITION_STATUS = "groupkeeper_partition_status"
SAME = (
    COMMITTED, PARTITION_LAG, PARTITION_SECONDS, LOG_START, LOG_END, LAG, SECONDS, MARGIN, PARTITIONS, ON_IT, INFO,
    MEMBERS, EPOCH, TARGET, REBALANCES, TASKS, GROUP_STATUS, PARTITION_STATUS,
)  # fmt: skip
"""What the pages and the exporter both tell."""

SORTS = {"group": "group", "type": "type", "state": "state", "lag": "lag", "time_lag": "time_lag_s",
         "margin": "retention_margin_s", "members": "members", "rebalances": "rebalances"}  # fmt: skip
"""What the address of the list calls the columns of the CSV."""
FIGURES = ("lag", "time_lag_s", "retention_margin_s", "members", "rebalances")

UNITS = {"d": 86400, "h": 3600, "min": 60, "s": 1}
Line = dict[str, str]


class Page(HTMLParser):
    """The tables by what they are called, lists of numbers with the title above each, and all of the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: dict[str, list[Line]] = {}
        self.numbers: list[tuple[str, Line]] = []
        self.title = ""
        self._texts: list[str] = []
        self._begun = 0
        self._called = ""
        self._heads: list[str] = []
        self._named: Line = {}
        self._cells: list[str] = []
        self.feed(html)
        self.close()

    @property
    def instants(self) -> list[str]:
        return re.findall(r"as of (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", "".join(self._texts))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._called = given.get("aria-label") or self._called
        if tag == "a":
            self._named = dict(parse_qsl(urlsplit(given.get("href") or "").query))
        if tag in ("th", "td", "dt", "dd", "h3"):
            self._begun = len(self._texts)
            self._named = {}
        elif tag == "table":
            self.tables[self._called] = []
            self._heads = []
        elif tag == "dl":
            self.numbers.append((self.title, {}))

    def _take(self, text: str) -> None:
        self._texts.append(text)

    handle_data = _take  # type: ignore[assignment]  # what the library calls it, with a name that isn't ours

    def handle_endtag(self, tag: str) -> None:
        text = "".join(self._texts[self._begun :])
        match tag:
            case "th":
                self._heads.append(text.rstrip(" ▼▲"))
            case "td":
                self._cells.append(self._named.get(self._heads[len(self._cells)], text))  # names may be shown cut
            case "tr" if self._cells:
                self.tables[self._called].append(dict(zip(self._heads, self._cells, strict=True)))
                self._cells = []
            case "dt":
                self._heads = [text]
            case "dd":
                self.numbers[-1][1][self._heads[0]] = text
            case "h3":
                self.title = text


@dataclass
class Seen:
    """`rows`: of the CSV. `wish`: what the address of the list selects; `listed`: what is there then. `fleet`:
    the numbers of the cluster on the first page. `told`: the exporter's series of the same poll. `groups`: what no
    series has.
    """

    series: Series
    rows: list[Line]
    wish: Mapping[str, str]
    listed: list[Line]
    fleet: Line
    told: Series = field(default_factory=dict)
    groups: dict[str, Own] = field(default_factory=dict)


def ask(desk: Desk, cluster: str, rng: random.Random, truth: Truth) -> Answer:
    """What the pages say of a poll that began after the question. When another poll came in between, again."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        told = judge_exporter.ask(desk, cluster, rng, truth)
        measured = datetime.fromtimestamp(told.content[MEASURED][()], UTC)
        try:
            seen, instants = _read(desk, cluster, rng, told.content)
        except HTTPError as error:  # a group or topic that the poll in between did not find any more
            found = f"{error.code} at {error.url}"
        else:
            if instants == {f"{measured:%Y-%m-%d %H:%M:%S}"}:
                about = {**told.about, "step": step, "watched": _watched(desk, cluster, told)}
                return replace(told, answered=now(), content=seen, about=about)
            found = f"{sorted(instants)}"
        assert time.monotonic() < deadline, f"pages of {cluster} at {measured}: {found}"


def _watched(desk: Desk, cluster: str, told: Answer) -> Watched:
    """Up to the poll of this answer."""
    measured = round(told.content[MEASURED][()] * 1000) * 1_000_000
    return Watched(desk.watch.up_to(cluster, measured), desk.trends)


def _read(desk: Desk, cluster: str, rng: random.Random, told: Series) -> tuple[Seen, set[str]]:
    """All pages of a cluster, and the instants that they state."""
    instants: set[str] = set()

    def text(path: str, **parameters: str) -> str:
        return judge_exporter.get(desk, f"{path}?{urlencode(parameters)}")

    def page(path: str, **parameters: str) -> Page:
        found = Page(text(path, cluster=cluster, **parameters))
        instants.update(found.instants)
        return found

    rows = list(csv.DictReader(io.StringIO(text("/groups.csv", cluster=cluster), newline="")))
    for row in rows:
        row["group"] = re.sub(r"^'(?=[-=+@\t\r])", "", row["group"])  # which keeps a spreadsheet from calculating
    wish = _wish(rows, rng)
    listed = page("/cluster", **wish).tables.get("groups", [])
    series: Series = {MEASURED: told[MEASURED]}
    groups: dict[str, Own] = {}
    lines = {line["group"]: line for line in listed}
    for row in rows:
        own = page("/group", group=row["group"])
        group_series(series, row["group"], own)
        groups[row["group"]] = Own(own.numbers[0][1], own.tables.get("members", []),
                                   own.tables.get("parts of the topology", []), row,
                                   lines.get(row["group"], {}))  # fmt: skip
        if row["problem"]:
            series.setdefault(PROBLEM, {})[row["group"], row["problem"], ""] = 1
    for line in page("/topics").tables.get("topics", ()):
        topic_series(series, line["topic"], page("/topic", topic=line["topic"]), told)
    fleet = Page(text("/"))
    titles = [title for title, _ in fleet.numbers]
    instants.add(fleet.instants[titles.index(cluster)] if len(titles) == len(fleet.instants) else "a cluster is down")
    return Seen(series, rows, wish, listed, dict(fleet.numbers)[cluster], told, groups), instants


def _wish(rows: list[Line], rng: random.Random) -> dict[str, str]:
    """A filter that some group meets, and an order."""
    some = rng.choice(rows or [dict.fromkeys(("group", "type", "state"), "")])
    wish = {"sort": rng.choice(list(SORTS)), "order": rng.choice(["up", "down"])}
    match rng.randrange(4):
        case 0:
            wish["q"] = some["group"][:3].upper()
        case 1:
            wish["type"] = some["type"]
        case 2:
            wish["state"] = some["state"]
    return wish


UNKNOWN_TEXTS = ("—", "none", "unknown")


def _number(text: str) -> int | None:
    shown = text.removeprefix("≥ ").partition(" (")[0].replace(",", "")  # "7 (3 lost)"
    return None if shown in UNKNOWN_TEXTS else int(shown)


def seconds_of(text: str) -> float | None:
    """The least that a duration may be that is shown so."""
    shown = text.removeprefix("≥ ").removeprefix("~ ")
    if shown in UNKNOWN_TEXTS:
        return None
    sign, shown = (-1, shown[1:]) if shown.startswith("−") else (1, shown)
    if shown == "under 1 s":
        return sign * 0.001
    words = shown.replace(",", "").split()
    return float(sign * sum(int(count) * UNITS[unit] for count, unit in zip(words[::2], words[1::2], strict=True)))


def step(seconds: float) -> float:
    """By how much a duration may be longer than its two units say; durations are whole milliseconds."""
    if seconds < 1:
        return 0.998 if seconds else 0.0
    return (1 if seconds < UNITS["h"] else UNITS["min"] if seconds < UNITS["d"] else UNITS["h"]) - 0.001


def _set(series: Series, name: str, value: float | None, *labels: str) -> None:
    if value is not None:
        series.setdefault(name, {})[labels] = value


def group_series(series: Series, group: str, page: Page) -> None:
    """What the page of a group says."""
    facts = page.numbers[0][1]
    assignor = facts.get("assignor", "—").removeprefix("—")
    series.setdefault(INFO, {})[group, *(facts[name].removeprefix("—") for name in ("type", "state")), assignor] = 1
    _set(series, GROUP_STATUS, 1, group, facts["status"])
    _set(series, MEMBERS, _number(facts["members"]), group)
    _set(series, REBALANCES, _number(facts["rebalances seen"]), group)
    _set(series, EPOCH, _number(facts.get("group epoch", "—")), group)
    _set(series, TARGET, _number(facts.get("target epoch", "—")), group)
    tasks = facts.get("active, standby, warm-up tasks")
    for role, count in zip(("active", "standby", "warmup"), tasks.split(" / ") if tasks else (), strict=bool(tasks)):
        _set(series, TASKS, _number(count), group, role)
    counts: Counter[tuple[str, str]] = Counter()
    for line in page.tables.get("partitions", ()):
        _partition(series, group, line, counts)
    for (name, topic), number in counts.items():
        _set(series, name, number, group, topic)
    for line in page.tables.get("members", ()):
        places = re.findall(r"\d+_\d+", line["active tasks"]) if "active tasks" in line else re.findall(
            r"\d+(?=, |;|$)", re.sub(r"[^;]*: ", "", line["assignment"]))  # fmt: skip
        _set(series, MEMBER_PARTITIONS, len(places), group, line["member"], line["client"], line["host"])


def _partition(series: Series, group: str, line: Line, counts: Counter[tuple[str, str]]) -> None:
    topic, at = line["topic"], line["partition"]
    offset = "start offset" if "start offset" in line else "committed offset"
    committed, start, end, lag = (_number(line[name]) for name in (offset, "log start", "log end", "lag"))
    seconds = seconds_of(line["time lag"])
    status = line["status"].removesuffix(" the reason")
    if status in ("stalled", "stopped", "losing"):
        _set(series, PARTITION_STATUS, 1, group, topic, at, status)
    _set(series, COMMITTED, committed, group, topic, at)
    _set(series, PARTITION_LAG, lag, group, topic, at)
    _set(series, PARTITION_SECONDS, seconds, group, topic, at)
    _set(series, LOG_START, start, topic, at)
    _set(series, LOG_END, end, topic, at)
    if line["time lag"].startswith("~"):
        counts[ESTIMATED, topic] += 1
    if committed is not None and seconds is None:
        counts[UNKNOWN, topic] += 1
    if committed is None and start is not None and end is not None:
        counts[UNCOMMITTED, topic] += end - start
    if lag is not None:
        counts[MAX_LAG, topic] = max(counts[MAX_LAG, topic], lag)


def topic_series(series: Series, topic: str, page: Page, told: Series | None = None) -> None:
    """What the page of a topic says of those who read it. `told`: what the exporter says, for lags that the page
    calls unknown, as nothing is committed in partitions with records.
    """
    for line in page.tables["groups that read it"]:
        own = (line["group"], topic)
        for name, column in ((PARTITIONS, "partitions"), (ON_IT, "members on it"), (LAG, "lag"), (LOST, "lost")):
            _set(series, name, _number(line[column]), *own)
        _set(series, BY_STATUS, _number(line["uncommitted partitions"]), *own, "uncommitted")
        _set(series, SECONDS, seconds_of(line["time lag"]), *own)
        for name, column in ((LAG, "lag"), (SECONDS, "time lag")):
            if line[column] == "unknown" and told is not None:
                _set(series, name, told.get(name, {}).get(own), *own)
        _set(series, MARGIN, seconds_of(line["retention margin"]), *own)


def judge(truth: Truth, answer: Answer) -> Verdict:
    seen: Seen = answer.content
    verdict = judge_exporter.judge(truth, replace(answer, content=seen.series))
    for texts in (_told(answer, seen), _csv(answer, seen), _listed(answer, seen), _fleet(answer, seen)):
        for text in texts:
            verdict.comparisons += 1
            if text:
                verdict.differences.append(Difference(NAME, answer.cluster, text))
    for group, text in followed.judge(_looked(truth, answer, seen), verdict):
        verdict.differences.append(Difference(NAME, answer.cluster, text, group=group))
    return verdict.renamed(judge_exporter.NAME, NAME)


def _looked(truth: Truth, answer: Answer, seen: Seen) -> Looked:
    unsure = {labels[0] for name in (ESTIMATED, UNKNOWN) for labels in seen.series.get(name, {})}
    return Looked(truth, answer, seen.groups, unsure)


def _told(answer: Answer, seen: Seen) -> Iterator[str]:
    """The pages beside the exporter: a text for each pair, empty where they agree."""
    for name in SAME if seen.told else ():
        shown, told = seen.series.get(name, {}), seen.told.get(name, {})
        for labels in sorted(shown.keys() | told.keys()):
            one, other = shown.get(labels), told.get(labels)
            yield "" if agrees(answer, one, other) else f"{name} {labels} {one}, of the exporter {other}"


def _figure(text: str) -> float | None:
    return float(text) if text else None


def _csv(answer: Answer, seen: Seen) -> Iterator[str]:
    """The CSV beside the pages of groups and topics, whose times are rounded."""
    sums: dict[str, dict[str, list[float]]] = {}
    for name in (LAG, SECONDS, MARGIN):
        for (group, _), figure in seen.series.get(name, {}).items():
            sums.setdefault(group, {}).setdefault(name, []).append(figure)
    infos = {labels[0]: labels[1:3] for labels in seen.series.get(INFO, {})}
    unsure = {group for group, _ in seen.series.get(UNKNOWN, {})}
    for row in seen.rows:
        group, of = row["group"], sums.get(row["group"], {})
        wanted: dict[str, float | None] = {
            "lag": sum(of[LAG]) if LAG in of else None,
            # Where the times of some partitions are unknown and nothing waits in the others, nothing is known.
            "time_lag_s": (max(of[SECONDS]) or (None if group in unsure else 0.0)) if SECONDS in of else None,
            "retention_margin_s": min(of[MARGIN]) if MARGIN in of else None,
            "members": seen.series.get(MEMBERS, {}).get((group,)),
            "rebalances": seen.series.get(REBALANCES, {}).get((group,)),
        }
        for name, value in wanted.items():
            found = _figure(row[name])
            yield "" if agrees(answer, value, found) else f"CSV: {name} of {group} {found}, of its pages {value}"
        kind = (row["type"], row["state"])
        yield "" if kind == infos.get(group) else f"CSV: {group} {kind}, of its page {infos.get(group)}"


def _listed(answer: Answer, seen: Seen) -> Iterator[str]:
    """The list, as the address filters and sorts it, beside the CSV of all groups."""
    rows = [row for row in seen.rows
            if seen.wish.get("q", "").lower() in row["group"].lower()
            and all(seen.wish.get(name, row[name]) in ("", row[name]) for name in ("type", "state"))]  # fmt: skip
    column = SORTS[seen.wish["sort"]]
    rows.sort(key=itemgetter("group"))
    known = [row for row in rows if row[column] or column in ("type", "state")]
    known.sort(key=lambda row: float(row[column]) if column in FIGURES else row[column],
               reverse=seen.wish["order"] == "down")  # fmt: skip
    wanted = [*known, *(row for row in rows if row not in known)]
    names, found = [row["group"] for row in wanted], [line["group"] for line in seen.listed]
    yield "" if names == found else f"list {dict(seen.wish)}: {found}, of the CSV {names}"
    for row, line in zip(wanted, seen.listed, strict=False):
        shown = [_number(line["lag"]), seconds_of(line["time lag"]), seconds_of(line["retention margin"]),
                 _number(line["members"]), _number(line["rebalances"])]  # fmt: skip
        for name, one in zip(FIGURES, shown, strict=True):
            figure = _figure(row[name])
            # Without a commit, past the log's end or without an end: the list has no figure, the CSV what is known.
            is_least = row["uncommitted_partitions"] not in ("", "0") or row["status"] == "unknown"
            is_least &= name in ("lag", "time_lag_s")
            is_same = agrees(answer, one, figure) or (is_least and one is None and not figure)
            yield "" if is_same else f"list: {name} of {line['group']} {one}, of the CSV {row[name]}"
        kind = (line["type"].removeprefix("—"), line["state"].removeprefix("—"))
        yield "" if kind == (row["type"], row["state"]) else f"list: {line['group']} {kind}, of the CSV {row}"


def _fleet(answer: Answer, seen: Seen) -> Iterator[str]:
    """The numbers of the first page beside the CSV."""

    def known(name: str) -> Iterable[float]:
        return [float(row[name]) for row in seen.rows if row[name]]

    wanted: dict[str, tuple[Any, float | None]] = {
        "groups": (_number, len(seen.rows)),
        "members": (_number, sum(known("members"))),
        "longest time lag": (seconds_of, max(known("time_lag_s"), default=None)),
        "shortest retention margin": (seconds_of, min(known("retention_margin_s"), default=None)),
    }
    for name, (read, value) in wanted.items():
        found = read(seen.fleet[name])
        yield "" if agrees(answer, found, value) else f"first page: {name} {seen.fleet[name]}, of the CSV {value}"


def spoil(truth: Truth, answer: Answer, rng: random.Random) -> Answer | None:
    """One figure that is wrong: of the pages and the exporter alike, or of one page only."""
    seen: Seen = copy.deepcopy(answer.content)
    match rng.randrange(6):
        case 5:
            worse_group = followed.spoilt(_looked(truth, answer, seen), rng)
            if worse_group is None:
                return None
            seen.groups[worse_group[0]] = worse_group[1]
        case 0:
            if not seen.series.get(EPOCH):
                return None
            seen.series[EPOCH][rng.choice(sorted(seen.series[EPOCH]))] += 1
        case 1:
            if not seen.rows:
                return None
            row = rng.choice(seen.rows)
            row["members"] = str(int(row["members"] or 0) + 1)
        case 2:
            if not seen.listed:
                return None
            seen.listed.remove(rng.choice(seen.listed))
        case 3:
            seen.fleet["groups"] = str(len(seen.rows) + 1)
        case _:
            worse = judge_exporter.spoil(truth, replace(answer, content=seen.series), rng)
            if worse is None:
                return None
            return replace(answer, content=Seen(worse.content, [], {"sort": "group", "order": "up"}, [], _NOBODY))
    return replace(answer, content=seen)


_NOBODY = {"groups": "0", "members": "0", "longest time lag": "—", "shortest retention margin": "—"}
"""The first page where there is no group: with it nothing but the truth can tell that a series is wrong."""
