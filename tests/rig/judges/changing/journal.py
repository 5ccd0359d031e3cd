"""The pages of the journal: each change with who made it, what was committed before, and what after."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.rig.judges.changing.browser import Browser
from tests.rig.judges.pages import Line, Page

Place = tuple[str, int]
LONGEST_NAME = 40
"""Longer names, and those that cannot be printed, may be shown otherwise."""


@dataclass(frozen=True)
class Change:
    """What was changed. `offsets`: before and after, None: nothing is committed. `undone_by`: "" for none."""

    id: str
    kind: str
    user: str
    cluster: str
    group: str
    offsets: Mapping[Place, tuple[int | None, int | None]]
    undone_by: str = ""


@dataclass
class Told:
    """`row`: of the list of changes, {} where the change isn't there. `lines`: the table of its own page."""

    row: Line = field(default_factory=dict)
    lines: Sequence[Line] = ()
    text: str = ""


def look(browser: Browser, change: Change) -> Told:
    """What the pages say of a change."""
    html = browser.get("/journal", group=change.group)
    ids = re.findall(r'href="/journal/change\?id=([^"]+)">\d{4}-', html)
    rows = Page(html).tables.get("changes", [])
    own = browser.get("/journal/change", id=change.id)
    row = dict(zip(ids, rows, strict=True)).get(change.id, {})
    return Told(row, Page(own).tables.get("partitions", []), own)


def differences(told: Told, change: Change) -> Iterator[str]:
    """What is wrong there."""
    moved = {place: pair for place, pair in change.offsets.items() if pair[0] != pair[1]}
    wanted = {"what": change.kind, "by": change.user, "result": "applied", "cluster": change.cluster,
              "undone by": change.undone_by, "names": change.group}  # fmt: skip
    for name, value in wanted.items():
        shown = told.row.get(name)
        if name == "names" and (len(value) > LONGEST_NAME or not value.isprintable()):
            continue
        if shown != value:
            yield f"journal: {name} of {change.id} is {shown!r}, truth {value!r}"
    count = told.row.get("partitions", "").replace(",", "")
    if count != str(len(told.lines)) or len(told.lines) < len(moved):
        yield f"journal: {count} partitions of {change.id}, on its page {len(told.lines)}, truth {len(moved)}"
    if change.user not in told.text:
        yield f"journal: {change.user} is not on the page of {change.id}"
    seen = {(line["topic"], int(line["partition"])): line for line in told.lines}
    for place, (before, after) in sorted(change.offsets.items()):
        line = seen.pop(place, None)
        if line is None:
            if before != after:
                yield f"journal: {place} is missing in {change.id}"
            continue
        pair = ("none" if before is None else f"{before:,}", "deleted" if after is None else f"{after:,}")
        if (line["before"], line["after"]) != pair:
            yield f"journal: {place} of {change.id} from {line['before']} to {line['after']}, truth {pair}"
    if seen:
        yield f"journal: {sorted(seen)} in {change.id}, truth: they were not changed"


def spoilt(told: Told) -> Iterator[tuple[str, Told]]:
    """With one thing wrong, in each way."""
    yield "no change", replace(told, row={})
    for name, value in (("by", "somebody"), ("what", "nothing"), ("result", "refused"), ("undone by", "7")):
        yield f"another word for {name}", replace(told, row={**told.row, name: value})
    if told.lines:
        first, *others = told.lines
        yield "another offset before", replace(told, lines=[{**first, "before": "7,777,777"}, *others])
        yield "another offset after", replace(told, lines=[{**first, "after": "7,777,777"}, *others])
        yield "a partition too few", replace(told, lines=others)
