"""All commands of ``groupkeeper``, from its tables of commands."""

from collections.abc import Iterator, Mapping

from groupkeeper.cli.framework.commands import COMMANDS, Command, CommandName, Family


def leaves(entries: Mapping[str, CommandName] = COMMANDS, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The commands, as they are typed."""
    for name, entry in entries.items():
        loaded = entry.load()
        if isinstance(loaded, Family):
            yield from leaves(loaded.commands, (*path, name))
        else:
            yield " ".join((*path, name))


def command_of(name: str) -> Command:
    """A command as it is declared."""
    entries: Mapping[str, CommandName] = COMMANDS
    for word in name.split():
        loaded = entries[word].load()
        if isinstance(loaded, Command):
            return loaded
        entries = loaded.commands
    raise KeyError(name)
