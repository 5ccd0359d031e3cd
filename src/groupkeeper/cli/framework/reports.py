"""What commands of ``groupkeeper`` report: rows of a documented shape, in pages, and what is missing beside them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from groupkeeper.client.batch import Failure
from groupkeeper.client.errors import BrokersNotFound, ClientError
from groupkeeper.operations.authorization import Acl, Deed, missing_acl
from groupkeeper.protocol.errors import KafkaError

Places = Mapping[str, Sequence[int]]
"""Partitions by topic."""

Value = str | int | bool | None | Sequence[Mapping[str, str | int]]
Row = Mapping[str, Value]


class Column(NamedTuple):
    """A key in JSON and a column in CSV. ``in_table`` False: tables leave it out unless it is asked for."""

    name: str
    meaning: str
    in_table: bool = True


class Shape(NamedTuple):
    """Rows of one kind: what its schema is called, the key in JSON that has them, and their columns.

    ``version`` grows when a column goes or changes its meaning, not when one is added at the end.
    """

    schema: str
    kind: str
    columns: Sequence[Column]
    version: int = 1

    @property
    def name(self) -> str:
        """``offsets/1``"""
        return f"{self.schema}/{self.version}"


class Problem(NamedTuple):
    """What did not work: the error's name in capitals, its text, and what is concerned, None where that is nothing."""

    error: str
    message: str
    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    broker: int | None = None
    acl: Acl | None = None


class Page(NamedTuple):
    """A part of a report: it is shown as soon as it is there. ``remarks``: what is noteworthy but no failure.

    ``more``: facts about the whole, for programs. ``plain`` is what a report that is a text of its own has of it.
    """

    rows: Sequence[Row] = ()
    problems: Sequence[Problem] = ()
    remarks: Sequence[str] = ()
    more: Mapping[str, Value] = {}
    plain: str = ""


_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


def problem_of(
    failure: Failure,
    deed: Deed = Deed.DESCRIBE,
    *,
    group: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
    broker: int | None = None,
) -> Problem:
    """The problem that a failure is, with the ACL whose lack explains it."""
    if isinstance(failure, BrokersNotFound) and isinstance(failure.__cause__, KafkaError | ClientError):
        failure = failure.__cause__  # which says why
    name = failure.name if isinstance(failure, KafkaError) else _CAPITAL.sub("_", type(failure).__name__).upper()
    acl = missing_acl(failure, deed, group_id=group, topic=topic)
    return Problem(name, str(failure), group, topic, partition, broker, acl)
