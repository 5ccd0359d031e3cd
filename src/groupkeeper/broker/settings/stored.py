"""Settings that things have of their own (groups, subscriptions), by their names, kept in the data directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from groupkeeper.broker.storage.directory import StorageDirectory
from groupkeeper.broker.storage.journal import registry


class HasOverrides(Protocol):
    """Settings of which some are given, as texts by name."""

    overrides: Mapping[str, str]


C = TypeVar("C", bound=HasOverrides)


class StoredSettings(Generic[C]):
    """The settings of each name that has any of its own.

    Attributes:
        on_changed: functions that are called with a name after its settings changed.
    """

    def __init__(
        self, directory: StorageDirectory, kind: str, subject: str, key: str, make: Callable[[Mapping[str, str]], C]
    ) -> None:
        """Reads the registry `kind`.journal, whose entries have the name in `key`. `make` checks texts. Raises
        `InvalidSetting` when the file is damaged.
        """
        self.on_changed: list[Callable[[str], None]] = []
        self._key = key
        self._make = make
        self._plain = make({})
        self._by_name: dict[str, C] = {}
        self._journal = registry(directory, f"{kind}.journal", subject)
        self._journal.replay(lambda entry: self._set(entry[key], make(entry["configs"])))
        self._journal.begin(self._entry(name, one) for name, one in self._by_name.items())

    def of(self, name: str) -> C:
        """The settings in force now; without any of its own, they have their defaults."""
        return self._by_name.get(name, self._plain)

    def names(self) -> Sequence[str]:
        """The names with settings of their own, sorted."""
        return sorted(self._by_name)

    def check(self, overrides: Mapping[str, str]) -> C:
        """The settings that a name would have with these overrides. Raises `InvalidSetting`, `KafkaError`."""
        return self._make(overrides)

    def configure(self, name: str, overrides: Mapping[str, str]) -> None:
        """Replaces the overrides of a name; without any, the defaults apply. Raises as `check`, `KafkaStorageError`."""
        found = self.check(overrides)
        self._journal.write(self._entry(name, found))
        self._set(name, found)
        for callback in self.on_changed:
            callback(name)

    def _set(self, name: str, found: C) -> None:
        self._by_name.pop(name, None)
        if found.overrides:
            self._by_name[name] = found

    def _entry(self, name: str, found: C) -> dict[str, object]:
        return {self._key: name, "configs": dict(found.overrides)}
