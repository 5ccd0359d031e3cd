"""Arguments that Python would misread silently: one thing where a collection of them is meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from groupkeeper.client.errors import IllegalArgument

T = TypeVar("T")


def several(values: Iterable[T], name: str) -> Iterable[T]:
    """The values of an argument. Raises IllegalArgument for one alone, and for None.

    To Python a text is a collection of its letters, so that "billing" would be the groups b, i, l …, and a partition
    one of its fields.
    """
    if values is None or isinstance(values, str | bytes) or hasattr(values, "_fields"):
        example = "" if values is None else f": [{values!r}] for one alone"
        raise IllegalArgument(f"{name} must be a collection{example}")
    return values


def several_each(groups: Mapping[str, Iterable[T] | None], name: str) -> Mapping[str, Iterable[T] | None]:
    """The same for the values of a mapping by group; None stands for something else there."""
    for values in groups.values():
        if values is not None:
            several(values, name)
    return groups
