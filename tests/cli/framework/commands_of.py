"""All commands of ``groupkeeper``, from its tables of commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from groupkeeper.cli.framework.commands import COMMANDS, Entry, Family


def leaves(entries: Mapping[str, Entry] = COMMANDS, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The commands, as they are typed."""
    for name, entry in entries.items():
        loaded = entry.load()
        if isinstance(loaded, Family):
            yield from leaves(loaded.commands, (*path, name))
        else:
            yield " ".join((*path, name))
