"""All commands of `groupkeeper`, from its tables of commands."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from groupkeeper.cli.framework.commands import COMMANDS, Command, CommandName, Family
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans import document
from groupkeeper.operations.plans.model import Change, GroupPlan, Plan, PlannedTopic


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


NEEDED = {
    "groups describe": "g",
    "groups offsets": "g",
    "groups members": "g",
    "groups why": "g",
    "transactions describe": "x",
    "transactions abort": "x",
    "groups watch": "g",
    "groups reset": "g --topic t --to-earliest",
    "groups delete-offsets": "g --topic t",
    "groups delete": "g",
    "plan reset": "g --topic t --to-earliest",
    "plan delete-offsets": "g --topic t",
    "plan sweep": "g --idle 7d",
    "plan clone": "g h",
    "context add": "prod --bootstrap-server b:1",
    "context use": "prod",
    "context protect": "prod",
    "context remove": "prod",
    "completion": "bash",
    "check": "--max-lag 1",
    "pipeline snapshot": "--tables t",
    "pipeline rebuild": "--tables t",
    "pipeline follow": "--tables t",
    "pipeline report": "--tables t",
    "pipeline quality": "--tables t",
    "pipeline forget": "g --tables t",
    "pipeline as-of": "--tables t --time 2026-01-31T23:59:59",
    "pipeline scan-time": "--tables t --time 2026-01-31T23:59:59 --topic t",
    "spark lag": "checkpoint",
    "spark starting-offsets": "--group g",
}
"""The arguments without which a command is none, but for those of `apply`."""


def needed(command: str, folder: Path) -> list[str]:
    """What the command needs to be understood; the plan to apply is written into the folder."""
    if command == "apply":
        plan = folder / "plan.json"
        groups = (GroupPlan("g", {TopicPartition("t", 0): Change(OffsetAndMetadata(5), OffsetAndMetadata(0))}),)
        plan.write_text("".join(document.write(Plan(None, groups, topics={"t": PlannedTopic(None, 1)}))))
        return [str(plan)]
    return NEEDED.get(command, "").split()
