"""Checks arguments that Python would misread silently, such as one value instead of a collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from groupkeeper.client.errors import IllegalArgument

T = TypeVar("T")
M = TypeVar("M", bound=Mapping[Any, Any])
MM = TypeVar("MM", bound=Mapping[Any, Mapping[Any, Any]])


def several(values: Iterable[T], name: str) -> list[T]:
    """A collection argument as a list: an iterator is read here, and only here. Raises IllegalArgument for a single
    value, and for None. Python would iterate over a text's letters ("billing" as the groups b, i, l …) and over a
    partition's fields.
    """
    if values is None or isinstance(values, str | bytes) or hasattr(values, "_fields"):
        example = "" if values is None else f": [{values!r}] for one alone"
        raise IllegalArgument(f"{name} must be a collection{example}")
    return list(values)


def partitions_each(groups: Mapping[str, Iterable[T] | None]) -> dict[str, list[T] | None]:
    """The partitions of a mapping by group, each checked as by `several`, without repetitions; None stays None."""
    return {
        group_id: None if values is None else list(dict.fromkeys(several(values, "partitions")))
        for group_id, values in mapped(groups, "groups").items()
    }


def mapped(values: M, name: str) -> M:
    """Returns a mapping argument. Raises IllegalArgument if it is not a mapping."""
    if not isinstance(values, Mapping):
        raise IllegalArgument(f"{name} must be a mapping, {{key: value}}, not {values!r}")
    return values


def changes_each(changes: MM) -> MM:
    """Returns changes by name, of each resource. Raises IllegalArgument if they are no mapping of mappings."""
    for key, inner in mapped(changes, "changes").items():
        mapped(inner, f"changes[{key!r}]")
    return changes


def of_kind(values: Iterable[T], kind: type[T], name: str) -> list[T]:
    """A collection argument as a list. Raises IllegalArgument for a value of another class, and for a single value."""
    found = several(values, name)
    for value in found:
        one_of(value, kind, name)
    return found


def one_of(value: T, kind: type | tuple[type, ...], name: str, *, secret: bool = False) -> T:
    """Returns a value of one of the classes. Raises IllegalArgument for any other, showing it unless `secret`."""
    if not isinstance(value, kind) or isinstance(value, bool):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        given = "a value" if secret else repr(value)
        raise IllegalArgument(f"{name}: {given} is no {' and no '.join(each.__name__ for each in kinds)}")
    return value


def keyed(values: M, kind: type, name: str, values_kind: type | tuple[type, ...] = object) -> M:
    """Returns a mapping argument. Raises IllegalArgument if a key or a value is of another class."""
    for key, value in mapped(values, name).items():
        one_of(key, kind, name)
        one_of(value, values_kind, f"{name}[{key!r}]")
    return values


def one_group(group_id: str) -> str:
    """Returns a group id. Raises IllegalArgument if it is not a text."""
    return one_of(group_id, str, "group_id")
