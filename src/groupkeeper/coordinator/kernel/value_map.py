"""An immutable mapping with cheap modified copies."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Any, Generic, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")

_GONE: Any = ...
"""Marks a removed key."""


class ValueMap(Generic[K, V]):
    """As a dict, and in its order. A copy that differs in one key costs the square root of the size, so that a group of
    many members is not copied for each one.

    A copy shares the dict of the original and has a few changes of its own, until there are too many of them.
    """

    __slots__ = ("_changes", "_shared", "_size")

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        self._shared: dict[K, V] = dict(items or ())
        self._changes: dict[K, V] = {}
        self._size = len(self._shared)

    def having(self, items: Mapping[K, V]) -> ValueMap[K, V]:
        """A copy with these values."""
        if any(self._changes.get(key) is _GONE for key in items):
            self._settle()  # a removed key that comes back goes to the end
        return self._changed(items, sum(key not in self for key in items))

    def without(self, *keys: K) -> ValueMap[K, V]:
        """A copy without the keys; missing keys are ignored."""
        present = dict.fromkeys((key for key in keys if key in self), _GONE)
        return self._changed(present, -len(present)) if present else self

    def _changed(self, changes: Mapping[K, V], growth: int) -> ValueMap[K, V]:
        new: ValueMap[K, V] = ValueMap.__new__(ValueMap)
        new._shared = self._shared
        new._changes = {**self._changes, **changes}
        new._size = self._size + growth
        if len(new._changes) ** 2 > len(new._shared):
            new._settle()
        return new

    def _settle(self) -> dict[K, V]:
        if self._changes:
            merged = {**self._shared, **self._changes}
            self._shared = {key: value for key, value in merged.items() if value is not _GONE}
            self._changes = {}
        return self._shared

    def __getitem__(self, key: K) -> V:
        if key not in self._changes:
            return self._shared[key]
        value = self._changes[key]
        if value is _GONE:
            raise KeyError(key)
        return value

    @overload
    def get(self, key: K) -> V | None: ...

    @overload
    def get(self, key: K, default: V) -> V: ...

    def get(self, key: K, default: V | None = None) -> V | None:
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key: object) -> bool:
        if key in self._changes:
            return self._changes[key] is not _GONE
        return key in self._shared

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[K]:
        for key in self._shared:
            if self._changes.get(key) is not _GONE:
                yield key
        for key, value in self._changes.items():
            if value is not _GONE and key not in self._shared:
                yield key

    def items(self) -> ItemsView[K, V]:
        return self._settle().items()

    def values(self) -> ValuesView[V]:
        return self._settle().values()

    def __eq__(self, other: object) -> bool:
        return type(other) is ValueMap and self._settle() == other._settle()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ValueMap({self._settle()})"
