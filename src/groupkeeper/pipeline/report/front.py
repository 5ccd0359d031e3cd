"""The front of the page: what to act on, each kind as a short ranked list with figures and the commands that help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from html import escape

from groupkeeper import shell
from groupkeeper.html.markup import class_of, sentence, text
from groupkeeper.pipeline.report.model import Finding, Report
from groupkeeper.rules import urgency, words
from groupkeeper.rules.status import Status
from groupkeeper.rules.urgency import Urgency
from groupkeeper.rules.words import capitalized

_SHOWN = 3
_MOST = 50
_TONES = {
    Urgency.EXPIRING: "is-losing", Urgency.STANDING: "is-stopped", Urgency.BEHIND: "is-lagging",
    Urgency.STORM: "is-unstable", Urgency.REST: "is-stopped", Urgency.SLIPPING: "is-lagging",
    Urgency.LEFT: "is-abandoned",
}  # fmt: skip
TITLES: Mapping[str, tuple[str, str]] = {
    **{each: (title, _TONES[each]) for each, title in urgency.TITLES.items()},
    "calmed": ("Rebalance storms that are over", "is-unstable"),
    "held": ("Held up by transactions", "is-stalled"),
    "stale": ("Unused: to clean up, or to keep from expiring", "is-unknown"),
}
"""The lists by the kind of their findings, the most urgent first: a title and a class."""


def headline(report: Report) -> tuple[str, str]:
    """The overall state: good, bad or none (unknown), and a sentence about it."""
    unknown = sum(each.status == Status.UNKNOWN for each in report.groups)
    tone, text = urgency.headline(len(report.groups), Counter(each.urgency for each in report.groups), unknown)
    return tone, f"{capitalized(text)}."


def unmeasured(report: Report) -> list[str]:
    """A sentence for each cluster that could not be measured."""
    return [
        f"Lag and statuses in cluster {each.cluster} are unknown, as it could not be measured: {each.problem}"
        for each in report.unmeasured
    ]


def findings(report: Report, link: Callable[[str, str], str]) -> str:
    """All lists that are not empty. `link`: makes the link to a group from its cluster and its id."""
    lists = []
    for kind, (title, tone) in TITLES.items():
        own = [each for each in report.findings if each.kind == kind]
        if own:
            lists.append(
                f'<section class="card finding" id="act-{kind}"><h2><b{class_of(tone)}>{len(own):,}</b> {title}</h2>'
                f"{_items(report, own, link)}</section>"
            )
    return f'<div class="act" id="act">{"".join(lists)}</div>' if lists else ""


def _items(report: Report, found: Sequence[Finding], link: Callable[[str, str], str]) -> str:
    def listed(some: Sequence[Finding], first: int) -> str:
        items = "".join(_item(report, each, link) for each in some)
        return f'<ol start="{first}">{items}</ol>'

    shown = listed(found[:_SHOWN], 1)
    rest = found[_SHOWN:_MOST]
    if rest:
        left = len(found) - _MOST
        more = f'<p class="note">and {left:,} more in the tables</p>' if left > 0 else ""
        shown += f"<details><summary>{len(found) - _SHOWN:,} more</summary>{listed(rest, _SHOWN + 1)}{more}</details>"
    return shown


def _item(report: Report, each: Finding, link: Callable[[str, str], str]) -> str:
    where = f' <span class="soft">{text(each.partition)}</span>' if each.partition else ""
    name = link(each.cluster, each.group_id) if each.group_id else ""
    if not each.group_id and len(report.clusters) > 1:
        name = f'<span class="soft where">{text(each.cluster)}</span>'
    when = f" · since {words.moment(each.time)}" if _has_begun(each, report) else ""
    command = escape(shell.text(each.command))
    return (
        f'<li><div class="what"><span class="name">{name}{where}</span><b class="value">{figure(each)}</b></div>'
        f"<p>{sentence(each.note)}{when}</p><code>{command}</code></li>"
    )


def _has_begun(each: Finding, report: Report) -> bool:
    """Whether the finding's time is when it began; otherwise it is when it was measured, as for time that is left."""
    is_of_now = each.time is None or each.time == report.measured_time or each.unit == "ms left"
    return not is_of_now and each.kind not in ("stale", Urgency.SLIPPING)


def figure(each: Finding) -> str:
    """The finding's figure with its unit."""
    if each.value is None:
        return ""
    if each.unit == "ms left":
        return "now" if each.value <= 0 else f"{words.duration(int(each.value))} left"
    if each.unit.startswith("ms"):
        return words.duration(int(each.value)) + each.unit[2:]
    if each.unit == "records/s more":
        return f"+{words.rate(each.value)}"
    return f"{words.amount(round(each.value))} {each.unit}"
