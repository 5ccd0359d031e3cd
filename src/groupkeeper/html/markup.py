"""The building blocks of pages: text, numbers and tables. Names are untrusted: they come onto pages only through this
module.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from html import escape
from typing import Generic, NamedTuple, TypeVar

from groupkeeper.html import plots
from groupkeeper.rules import words

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


def number_column(title: str, of: Callable[[Shown], int | None], key: str | None = None) -> PageColumn[Shown]:
    """A column of numbers in full."""
    return PageColumn(title, lambda row: words.number(of(row)), "n", key, of)


def time_column(title: str, of: Callable[[Shown], datetime | None]) -> PageColumn[Shown]:
    """A column of times."""
    return PageColumn(title, lambda row: words.moment(of(row)), "t", by=lambda row: _seconds(of(row)))


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()


def table(
    columns: Sequence[PageColumn[Shown]],
    rows: Sequence[Shown],
    label: str,
    *,
    heads: Sequence[str] = (),
    untitled: Collection[str] | None = None,
    most: int | None = None,
    rest: str = "",
    attributes: str = "",
    has_keys: bool = False,
    none: str = "",
) -> str:
    """A table. `label`: for screen readers. `heads`: the headings, if they are more than titles. `untitled`: columns
    that need no label; if it is given, each row is a card on a phone. `most`: how many rows are shown (None: all);
    `rest`: text about where the others are. `attributes`: more of them; `has_keys`: whether cells have keys to sort by.
    `none`: the text in place of a table without rows; "": it has only headings.
    """
    if none and not rows:
        return nothing(none)
    titles = [None if untitled is None else "" if each.title in untitled else each.title for each in columns]
    labels = ["" if title is None else f' data-label="{title}"' for title in titles]
    note = ""
    if most is not None and len(rows) > most:
        note = f'<p class="note">The first {most:,} of {len(rows):,}{rest}.</p>'
    kind = "" if untitled is None else ' class="stack-up"'
    return (
        f'{note}<div class="wide" tabindex="0" role="group" aria-label="{escape(label)}"><table{kind}{attributes}>'
        f"<thead><tr>{''.join(heads or (each.head() for each in columns))}</tr></thead>"
        f"<tbody>{_body(columns, rows[:most], labels, has_keys=has_keys)}</tbody></table></div>"
    )


def sortable(
    columns: Sequence[PageColumn[Shown]], rows: Sequence[Shown], label: str, most: int | None = None, *, name: str = ""
) -> str:
    """A table that the report's script can sort. `name`: its name on the page; empty: none. That of `groups` can be
    searched, too.
    """
    own = f' id="table-{name}"' if name else ""
    rest, pack = "; all are in the tables", ""
    if name == "groups":
        own += ' data-filter="show only groups with …"'
        rest = "; a search or a sort goes through all of them"
        if most is not None and len(rows) > most:
            pack = packed(_body(columns, rows[most:], [""] * len(columns), has_keys=True), "rows")
    own = f' class="sortable"{own}'
    return table(columns, rows, label, most=most, rest=rest, attributes=own, has_keys=True) + pack


def packed(html: str, what: str, ids: str = "") -> str:
    """HTML, compressed for the page's script to about a tenth of its size. `ids`: the ids of its elements."""
    data = base64.b64encode(gzip.compress(html.encode(), 6, mtime=0)).decode()
    own = f' data-ids="{ids}"' if ids else ""
    return f'<script type="text/plain" data-pack="{what}"{own}>{data}</script>'


def _body(columns: Sequence[PageColumn[Shown]], rows: Sequence[Shown], labels: Iterable[str], *, has_keys: bool) -> str:
    whole = [
        (column.html, column.by if has_keys else None, class_of(column.kind) + label)
        for column, label in zip(columns, labels, strict=True)
    ]
    cells = (
        "".join(f"<td{of}{'' if by is None else _key(by(row))}>{html(row)}</td>" for html, by, of in whole)
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
