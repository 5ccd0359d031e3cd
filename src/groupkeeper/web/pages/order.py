"""Lists that the URL sorts and pages: headings of columns, and links between pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple, TypeVar

from groupkeeper.html.markup import PageColumn

ROWS = 100
ASCENDING_FIRST = frozenset(("group", "margin", "member", "partition", "state", "topic", "type"))
"""The columns that sort upwards unless the URL has an order: texts, and what is worst when small."""

Link = Callable[..., str]
"""Returns the URL of the same list with other parameters, by their names."""

T = TypeVar("T")


class Order(NamedTuple):
    """The column that sorts, the direction, and the page. `order` is up, down or "": the column's default."""

    sort: str
    order: str = ""
    page: int = 1

    @classmethod
    def of(cls, parameters: Mapping[str, str], columns: Sequence[PageColumn[T]] = (), default: str = "") -> Order:
        """The order that the URL requests, which may have any text."""
        sort, order, page = (parameters.get(name, "") for name in ("sort", "order", "page"))
        number = int(page) if page.isascii() and page.isdecimal() and len(page) < 8 else 1
        is_known = bool(sort) and sort in (each.key for each in columns)
        return cls(sort if is_known else default, order if order in ("up", "down") else "", max(1, number))

    @property
    def is_down(self) -> bool:
        return self.order == "down" if self.order else self.sort not in ASCENDING_FIRST

    @property
    def parameters(self) -> dict[str, str | int]:
        return {"sort": self.sort, "order": self.order}

    def head(self, column: PageColumn[T], link: Link) -> str:
        """The heading of a column, with a link that sorts by it."""
        if column.key is None:
            return column.head()
        is_own = self.sort == column.key
        goes_down = not self.is_down if is_own else column.key not in ASCENDING_FIRST
        address = link(sort=column.key, order="down" if goes_down else "up")
        mark = (" ▼" if self.is_down else " ▲") if is_own else ""
        aria = f' aria-sort="{"descending" if self.is_down else "ascending"}"' if is_own else ""
        return column.head(f'<a href="{address}">{column.title}{mark}</a>', aria)

    def heads(self, columns: Sequence[PageColumn[T]], link: Link) -> list[str]:
        """The headings of all columns."""
        return [self.head(column, link) for column in columns]

    def cut(self, rows: Sequence[T]) -> Sequence[T]:
        """The rows of the page."""
        start = (self._number(len(rows)) - 1) * ROWS
        return rows[start : start + ROWS]

    def turning(self, count: int, link: Link) -> str:
        """Links to the previous and the next page of `count` rows, in the same order."""
        pages, number = self._pages(count), self._number(count)
        if pages == 1:
            return ""
        before = f'<a rel="prev" href="{link(**self.parameters, page=number - 1)}">before</a>' if number > 1 else ""
        after = f'<a rel="next" href="{link(**self.parameters, page=number + 1)}">after</a>' if number < pages else ""
        return f'<nav aria-label="pages">{before}<span>page {number:,} of {pages:,}</span>{after}</nav>'

    def _number(self, count: int) -> int:
        return min(self.page, self._pages(count))

    @staticmethod
    def _pages(count: int) -> int:
        return max(1, -(-count // ROWS))


def ordered(rows: list[T], columns: Sequence[PageColumn[T]], order: Order) -> None:
    """Sorts in place; unknown values come last."""
    key = next((each.by for each in columns if each.by is not None and each.key == order.sort), None)
    assert key is not None, f"no column sorts by {order.sort!r}: give Order.of the `key` of one as the default"
    keyed = [(value, row) for row in rows if (value := key(row)) is not None]
    keyed.sort(key=itemgetter(0), reverse=order.is_down)
    rows[:] = [*(row for _, row in keyed), *(row for row in rows if key(row) is None)]
