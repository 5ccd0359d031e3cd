"""What all pages are made of. Names are what strangers chose: they come onto pages through ``text`` alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple
from urllib.parse import urlencode

from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.live.status import Status
from groupkeeper.operations.problems import Problem
from groupkeeper.pipeline.report import plots, words
from groupkeeper.pipeline.report.look import STYLE as REPORT_STYLE

STYLE = (
    REPORT_STYLE
    + """\
form{display:flex;flex-wrap:wrap;gap:8px 12px;align-items:end;margin:0 0 12px}
label{display:grid;gap:2px;font-size:13px;color:var(--soft)}
input,select,button{font:inherit;font-size:14px;color:inherit;background:var(--card);border:1px solid var(--line);
border-radius:6px;padding:6px 9px}
button{cursor:pointer}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
th a{color:inherit;text-decoration:none}
th a:hover{text-decoration:underline}
.crumbs{margin:0 0 14px;font-size:14px}
.problems{margin:0 0 12px;padding:0 0 0 18px}
.skip{position:absolute;left:-9999px}
.skip:focus{left:8px;top:8px;background:var(--card);padding:6px 10px}
"""
)

_MOST_PROBLEMS = 12


def text(name: str | None) -> str:
    """A name as it is shown."""
    return escape(words.name(name))


def url(path: str, **parameters: str | int | None) -> str:
    """A link of this server, ready for an attribute."""
    given = {name: value for name, value in parameters.items() if value not in (None, "")}
    return escape(path + ("?" + urlencode(given, errors="replace") if given else ""))


def page(title: str, body: str, crumbs: Sequence[tuple[str, str]] = ()) -> str:
    """A whole page. ``crumbs``: the way to it, as texts with links."""
    way = " › ".join(f'<a href="{link}">{text(name)}</a>' for name, link in crumbs)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"/>'
        f'<title>{text(title)}</title><link rel="stylesheet" href="/style.css"/></head>\n<body>'
        '<a class="skip" href="#content">to the content</a><main id="content">'
        + (f'<nav class="crumbs" aria-label="where">{way}</nav>' if way else "")
        + f"<h1>{text(title)}</h1>{body}"
        "<footer>groupkeeper serve, read only. All times are UTC. What the words mean: docs/glossary.md and "
        "docs/serve.md.</footer></main></body></html>\n"
    )


def moment(ms: int | None) -> str:
    """A point in time."""
    return words.moment(None if ms is None else datetime.fromtimestamp(ms / 1000, UTC))


def ago(ms: int, now_ms: int) -> str:
    """How long before now."""
    return f"{words.duration(max(0, now_ms - ms))} ago"


def status(of: Status) -> str:
    """A status with its mark."""
    return f'<span class="status is-{of}">{plots.dot(of)}{of}</span>'


def numbers(pairs: Iterable[tuple[str, str]]) -> str:
    """Labels with values, which are safe."""
    return (
        '<dl class="numbers">'
        + "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in pairs)
        + "</dl>"
    )


def problems(found: Sequence[Problem]) -> str:
    """Why something isn't known; nothing when all is."""
    if not found:
        return ""
    items = "".join(f"<li>{problem(each)}</li>" for each in found[:_MOST_PROBLEMS])
    left = len(found) - _MOST_PROBLEMS
    more = f"<li>and {left:,} more</li>" if left > 0 else ""
    return f'<ul class="problems">{items}{more}</ul>'


def problem(of: Problem) -> str:
    """One of them, with the permission that is missing."""
    where = [f"broker {of.broker}"] if of.broker is not None else []
    if of.topic is not None:
        where.append(of.topic if of.partition is None else f"{of.topic}-{of.partition}")
    said = f"missing ACL: {of.acl}" if of.acl is not None else of.message
    return escape(words.reason(": ".join([*where, said])))


def measured(snapshot: ClusterSnapshot, now_ms: int) -> str:
    """Of when the numbers are."""
    if snapshot.measured_ms is None:
        return "nothing is known now"
    return f"as of {moment(snapshot.measured_ms)}, {ago(snapshot.measured_ms, now_ms)}"


class Column(NamedTuple):
    """``key``: what the URL calls it when it can be sorted by, None: it can't. ``kind``: n, t, name or nothing."""

    title: str
    kind: str = ""
    key: str | None = None


class Cell(NamedTuple):
    """``html`` is safe."""

    html: str
    kind: str = ""


def table(heads: Sequence[str], rows: Iterable[Sequence[Cell]], caption: str) -> str:
    """``heads`` are safe cells of the first row."""
    body = "\n".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<thead><tr>{''.join(heads)}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def head(title: str, kind: str = "") -> str:
    """A cell of the first row."""
    return f'<th scope="col"{_class(kind)}>{title}</th>'


def _cell(cell: Cell) -> str:
    return f"<td{_class(cell.kind)}>{cell.html}</td>"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def number(value: int | None) -> Cell:
    """A number in full."""
    return Cell(words.number(value), "n")


def duration(ms: int | None, *, is_least: bool = False, is_estimated: bool = False) -> str:
    """A time, marked when it is at least that, or interpolated."""
    if ms is None:
        return "—"
    sign = "−" if ms < 0 else "≥ " if is_least else "~ " if is_estimated else ""
    return sign + words.duration(abs(ms))
