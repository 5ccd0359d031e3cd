"""The building blocks of pages: text, numbers and tables. Names are untrusted: they come onto pages only through this
module.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from html import escape
from typing import Generic, NamedTuple, TypeVar

from groupkeeper.pipeline.report import plots, words

Shown = TypeVar("Shown")


class PageColumn(NamedTuple, Generic[Shown]):
    """A column of a table. `html`: makes a row's cell, safe. `kind`: the class of cells: n, t, name, why, label or
    nothing. `by`: the key for sorting, None: the text; `key`: the column's name in URLs of `serve`.
    """

    title: str
    html: Callable[[Shown], str]
    kind: str = ""
    key: str | None = None
    by: Callable[[Shown], float | str | None] | None = None

    def head(self, shown: str = "", more: str = "") -> str:
        """The column's heading. `shown`: in place of the title; `more`: attributes."""
        kind = class_of(self.kind if self.kind in ("n", "t") else "")
        return f'<th scope="col"{kind}{more}>{shown or self.title}</th>'


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


def number(title: str, of: Callable[[Shown], int | None], key: str | None = None) -> PageColumn[Shown]:
    """A column of numbers in full."""
    return PageColumn(title, lambda row: words.number(of(row)), "n", key, of)


def time(title: str, of: Callable[[Shown], datetime | None]) -> PageColumn[Shown]:
    """A column of times."""
    return PageColumn(title, lambda row: words.moment(of(row)), "t", by=lambda row: _seconds(of(row)))


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()


def ago(of: datetime | None, now: datetime | None) -> str:
    """How long ago a time was; the time itself is shown as a tooltip."""
    if of is None or now is None:
        return words.moment(of)
    return f'<span title="{words.moment(of)} UTC">{words.ago(of, now)} ago</span>'


def table(columns: Sequence[PageColumn[Shown]], rows: Sequence[Shown], most: int, what: str, *, name: str = "") -> str:
    """A table of the first `most` rows, which the page's script can sort. `what`: its label for screen readers. `name`:
    its name on the page; empty: none.
    """
    is_searched = name == "groups"
    head = "".join(each.head() for each in columns)
    body, left, pack = _body(columns, rows[:most]), "", ""
    if len(rows) > most:
        where = "a search or a sort goes through all of them" if is_searched else "all are in the tables"
        left = f'<p class="note">The first {most:,} of {len(rows):,}; {where}.</p>'
        pack = packed(_body(columns, rows[most:]), "rows") if is_searched else ""
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


def _body(columns: Sequence[PageColumn[Shown]], rows: Sequence[Shown]) -> str:
    whole = [(column.html, column.by, class_of(column.kind)) for column in columns]
    cells = (
        "".join(f"<td{kind}{'' if by is None else _key(by(row))}>{html(row)}</td>" for html, by, kind in whole)
        for row in rows
    )
    return "\n".join(f"<tr>{each}</tr>" for each in cells)


def _key(value: float | str | None) -> str:
    """The attribute by which a cell is sorted; unknown values come below all others."""
    if value is None:
        return ' data-v="-1"'
    return f' data-v="{value:.10g}"' if isinstance(value, float) else f' data-v="{value}"'


def class_of(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
