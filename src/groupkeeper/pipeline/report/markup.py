"""The building blocks of pages: text, numbers and tables. Names are untrusted: they come onto pages only through this
module.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import NamedTuple

from groupkeeper.pipeline.report import plots, words


class Cell(NamedTuple):
    """`html` is safe; `key` is what a column of numbers or times is sorted by; `kind` is the class: n, t, name."""

    html: str
    kind: str = ""
    key: float | None = None


def text(name: str | None) -> str:
    """A name, safe for HTML."""
    return escape(words.name(name))


def sentence(text: str) -> str:
    """A sentence with untrusted names, safe for HTML."""
    return escape(words.reason(text))


def status(of: str) -> str:
    """A status with its mark."""
    return f'<span class="status is-{of}">{plots.dot(of)}{of}</span>'


def numbers(pairs: Iterable[tuple[str, str]]) -> str:
    """Labels with values; both must be safe HTML."""
    return (
        '<dl class="numbers">'
        + "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in pairs)
        + "</dl>"
    )


def nothing(text: str) -> str:
    """A paragraph in place of missing content; the text must be safe HTML."""
    return f'<p class="soft">{text}</p>'


def named(html: str) -> Cell:
    return Cell(html, "name")


def number(value: int | None) -> Cell:
    """A number in full."""
    return Cell(words.number(value), "n", -1 if value is None else value)


def time(of: datetime | None) -> Cell:
    return Cell(words.moment(of), "t", of.timestamp() if of else 0)


def ago(of: datetime | None, now: datetime | None) -> str:
    """How long ago a time was; the time itself is shown as a tooltip."""
    if of is None or now is None:
        return words.moment(of)
    return f'<span title="{words.moment(of)} UTC">{words.ago(of, now)} ago</span>'


def table(
    heads: Sequence[tuple[str, str]], rows: Sequence[Sequence[Cell]], most: int, what: str, *, name: str = ""
) -> str:
    """A table of the first `most` rows, which the page's script can sort. `what`: its label for screen readers. `name`:
    its name on the page; empty: none.
    """
    head = "".join(f'<th scope="col"{class_of(kind)}>{title}</th>' for title, kind in heads)
    is_searched = name == "groups"
    body, left, pack = _body(rows[:most]), "", ""
    if len(rows) > most:
        where = "a search or a sort goes through all of them" if is_searched else "all are in the tables"
        left = f'<p class="note">The first {most:,} of {len(rows):,}; {where}.</p>'
        pack = packed(_body(rows[most:]), "rows") if is_searched else ""
    wish = ' data-filter="show only groups with …"' if is_searched else ""
    own = f' id="table-{name}"' if name else ""
    return (
        f'{left}<div class="wide" tabindex="0" role="group" aria-label="{escape(what)}">'
        f'<table class="sortable"{own}{wish}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{pack}'
    )


def packed(html: str, what: str, ids: str = "") -> str:
    """HTML, compressed for the page's script to about a tenth of its size. `ids`: the ids of its elements."""
    data = base64.b64encode(gzip.compress(html.encode(), 6, mtime=0)).decode()
    own = f' data-ids="{ids}"' if ids else ""
    return f'<script type="text/plain" data-pack="{what}"{own}>{data}</script>'


def _body(rows: Sequence[Sequence[Cell]]) -> str:
    return "\n".join(f"<tr>{''.join(map(_td, row))}</tr>" for row in rows)


def _td(cell: Cell) -> str:
    key = "" if cell.key is None else f' data-v="{cell.key:.10g}"'
    if isinstance(cell.key, int):
        key = f' data-v="{cell.key}"'
    return f"<td{class_of(cell.kind)}{key}>{cell.html}</td>"


def class_of(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
