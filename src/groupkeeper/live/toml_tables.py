"""Files of settings in TOML, read strictly: each key is known and taken once."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from groupkeeper.operations.selection import BadGroupPattern, Names
from groupkeeper.operations.times import BadDuration


class BadTable(ValueError):
    """The file is invalid. The text has the place and the reason."""


T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


def read_toml(path: str, read: Callable[[Mapping[str, Any]], T]) -> T:
    """Reads a file with `read`. Raises BadTable with the file's name, OSError."""
    with open(path, "rb") as file:
        try:
            return read(tomllib.load(file))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, BadTable) as problem:
            raise BadTable(f"{path}: {problem}") from None


class TomlTable:
    """A table of the document. Each key is taken once; keys that are left are mistakes."""

    def __init__(self, where: str, table: Mapping[str, Any]) -> None:
        self.where = where
        self._left = dict(table)
        self._known: list[str] = []

    def take(self, key: str, read: Callable[[Any], Any], *default: Any) -> Any:
        """The value of a key, converted by `read`; else the default. Raises BadTable."""
        self._known.append(key)
        if key not in self._left:
            if not default:
                near = get_close_matches(key, self._left, 1)
                meant = f"; {near[0]!r} is not known here" if near else ""
                raise BadTable(f"{self.where}: {key} is missing{meant}")
            return default[0]
        value = self._left.pop(key)
        try:
            return read(value)
        except (BadDuration, BadGroupPattern, TypeError, ValueError) as problem:
            raise BadTable(f"{self.where}: {key}: {problem}") from None

    def tables(self, key: str, read: Callable[[TomlTable], T]) -> list[T]:
        """The tables `[[key]]`, each converted by `read`. Raises BadTable."""
        tables = self.take(key, _as_tables, [])
        return [read(TomlTable(f"{key} {number}", table)) for number, table in enumerate(tables, 1)]

    def end(self) -> None:
        """Raises BadTable if keys are left."""
        if self._left:
            key = next(iter(self._left))
            near = get_close_matches(key, self._known, 1)
            meant = f"; {near[0]!r} is" if near else f"; known: {', '.join(self._known)}"
            raise BadTable(f"{self.where}: {key!r} is not known here{meant}")


def as_text(value: Any) -> str:
    """The value as a text. Raises ValueError, as the other functions do."""
    if not isinstance(value, str) or not value:
        raise ValueError("expected a text")
    return value


def as_texts(value: Any) -> list[str]:
    """A list of texts."""
    if not isinstance(value, list):
        raise ValueError("expected a list of texts")
    return [as_text(each) for each in value]


def as_names(value: Any) -> Names:
    """Names and globs."""
    return Names(as_texts(value))


def one_of(known: type[E]) -> Callable[[Any], E]:
    """Reads one of the values of an enum."""

    def read(value: Any) -> E:
        try:
            return known(value)
        except ValueError:
            raise ValueError(f"expected one of {', '.join(known)}") from None

    return read


def _as_tables(value: Any) -> Sequence[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError("expected tables in double brackets")
    return value


def _ways(key: str) -> tuple[str, str, str]:
    """The three keys for a secret: itself, its file, or its environment variable."""
    return key, f"{key}_file", f"{key}_variable"


def given_secret(table: TomlTable, key: str) -> dict[str, str]:
    """The way in which a secret is given, for `secret_of`; empty: it is not."""
    return {way: value for way in _ways(key) if (value := table.take(way, as_text, None)) is not None}


def secret_of(where: str, key: str, given: Mapping[str, str], folder: Path) -> str:
    """The text of a secret; files are relative to the folder. Raises BadTable, whose text never has it."""
    if len(given) != 1:
        raise BadTable(f"{where}: expected one of {', '.join(_ways(key))}")
    ((way, value),) = given.items()
    if way == key:
        return value
    if way == f"{key}_variable":
        text = os.environ.get(value, "").strip()
    else:
        try:
            text = (folder / value).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as problem:
            why = problem.strerror if isinstance(problem, OSError) else "it is no text in UTF-8"
            raise BadTable(f"{where}: cannot read {value!r}: {why}") from None
    if not text:
        raise BadTable(f"{where}: {way} {value!r} gives nothing")
    return text
