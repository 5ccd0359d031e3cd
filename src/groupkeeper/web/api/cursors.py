"""Pages of lists, by cursors. A cursor is the key of the last row before the page, so a list that changes meanwhile
neither repeats nor skips the rows that stay.
"""

from __future__ import annotations

import base64
import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from groupkeeper.web.refusals import ActionRefused

MOST = 1000
USUAL = 100

T = TypeVar("T")
Key = tuple[str | int, ...]


class WantedPage(NamedTuple):
    """A page of at most `limit` rows. `cursor` None: the first one."""

    limit: int = USUAL
    cursor: str | None = None

    def of(self, all_rows: Iterable[T], key: Callable[[T], Key]) -> tuple[Sequence[T], str | None]:
        """The rows of the page, in the order of their keys, and the cursor of the next page; None: it is the last.
        Raises ActionRefused.
        """
        rows = sorted(all_rows, key=key)
        try:
            start = 0 if self.cursor is None else bisect_right(rows, _read(self.cursor), key=key)
        except (ValueError, TypeError):
            raise ActionRefused(422, f"cursor: {self.cursor!r} is not a cursor of this list.") from None
        end = start + self.limit
        return rows[start:end], _written(key(rows[end - 1])) if end < len(rows) else None


def _written(key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def _read(cursor: str) -> Key:
    """Decodes a cursor. Raises ValueError."""
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii")))
    except RecursionError:
        raise ValueError from None
    if not isinstance(found, list):
        raise ValueError
    return tuple(found)
