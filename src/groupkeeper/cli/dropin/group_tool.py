"""The common base of the tools for groups of one type: from the options to the one action that they name."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from groupkeeper.cli.dropin import drop_in, groups_text
from groupkeeper.cli.dropin.bootstrap import open_admin
from groupkeeper.cli.dropin.consumer_groups_options import Converted, converted
from groupkeeper.cli.dropin.drop_in import (
    Refusal,
    carry_out,
    failing,
    is_of_brokers,
    read_options,
    states_of,
    tell_plainly,
)
from groupkeeper.cli.dropin.options import OptionProblem, Options, OptionTable, UsageProblem
from groupkeeper.cli.framework.output import say
from groupkeeper.cli.java import values as java
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import GroupListing, GroupState, GroupType
from groupkeeper.operations.errors import BadTopicArgument, NothingCommitted

if TYPE_CHECKING:
    from groupkeeper.operations.plans.recorder import Recorder


class GroupTool(ABC):
    """The actions of a tool. Each prints its result, and returns the exit status (None: 0), or raises ExecutionFailure,
    Refusal, UsageProblem or OperationRefused.
    """

    table: ClassVar[OptionTable]
    kind: ClassVar[str]
    """The groups, in the words of messages: consumer, share or streams."""
    types: ClassVar[Sequence[GroupType]]
    """The groups, as brokers list them."""
    protocol_types: ClassVar[Sequence[str] | None] = None
    states: ClassVar[Sequence[GroupState]]
    """The states that a list of states may have."""
    failed_status: ClassVar[int] = 0
    """The exit status after a failure."""
    usage_errors: ClassVar[tuple[type[Exception], ...]] = (UsageProblem, BadTopicArgument, NothingCommitted)
    """Shown above the help when an action raises one."""

    def __init__(self, admin: Admin, options: Options, values: Converted) -> None:
        self.admin = admin
        self.options = options
        self.values = values

    @classmethod
    def tell(cls, problem: Exception) -> int:
        """Writes what failed; returns the exit status."""
        if isinstance(problem, Refusal):
            return tell_plainly(problem)
        text = java.described(problem) if is_of_brokers(problem) else problem
        say(f"\nError: Executing {cls.kind} group command failed due to {text}\n")
        return cls.failed_status

    @abstractmethod
    async def describe(self) -> int | None:
        """--describe."""

    @abstractmethod
    async def reset_offsets(self) -> int | None:
        """--reset-offsets."""

    @abstractmethod
    async def delete(self) -> int | None:
        """--delete."""

    @abstractmethod
    async def delete_offsets(self) -> int | None:
        """--delete-offsets."""

    async def list(self) -> int | None:
        """--list, with or without --state."""
        if not self.options.has("state"):
            say("".join(f"{group_id}\n" for group_id in await self.all_group_ids()))
            return None
        states = states_of(self.options.text("state") or "", self.states)
        with failing(java.described):
            groups = await self.listings(states)
        say(groups_text.group_states(groups))
        return None

    @cached_property
    def recorder(self) -> Recorder | None:
        """Journals what the tool changes. It must print the same as the official one: failures are ignored."""
        from groupkeeper.cli.framework.journals import recorder

        return recorder((self.table.tool, *sys.argv[1:]), lambda problem: None)

    def text_of(self, failure: Exception) -> str:
        """The text about a failed request."""
        return java.wrapped(failure)

    def in_order(self, group_ids: Sequence[str]) -> Sequence[str]:
        """All groups, in the order in which the tool handles them."""
        return group_ids

    async def listings(
        self, states: Sequence[GroupState] = (), types: Sequence[GroupType] | None = None
    ) -> Sequence[GroupListing]:
        """The groups in these states; no states: all groups."""
        # Texts send the official tool's own name of the state, NotReady, which finds no group.
        listings = await self.admin.list_groups(
            states=[state.value for state in states],
            types=self.types if types is None else types,
            protocol_types=self.protocol_types,
        )
        return [*listings.all().values()]

    async def all_group_ids(self) -> Sequence[str]:
        """The ids of all groups of the type."""
        with failing(self.text_of):
            return self.in_order([group.group_id for group in await self.listings()])

    async def group_ids(self) -> Sequence[str]:
        """The groups to act on."""
        return await self.all_group_ids() if self.options.has("all-groups") else self.options.texts("group")

    async def sorted_out(self, absent: str, absence: str) -> tuple[Sequence[str], dict[str, str]]:
        """The groups to delete, and for others the reason why they are not even tried, in the official tool's words.

        `absent`: the text about groups of other types; `absence`: the class of that failure.
        """
        with failing(self.text_of):
            states = {group.group_id: group.group_state for group in await self.listings()}
        every = self.options.has("all-groups")
        asked = dict.fromkeys(self.in_order([*states]) if every else self.options.texts("group"))
        failed: dict[str, str] = {}
        for group_id in asked:
            state = states.get(group_id)
            if group_id not in states:
                failed[group_id] = f"{absence}: Group '{group_id}' {absent}."
            elif state is GroupState.DEAD:
                why = f"{self.kind.capitalize()} group '{group_id}' group state is DEAD."
                failed[group_id] = f"java.lang.IllegalStateException: {why}"
            elif state not in (GroupState.EMPTY, None):
                why = f"{self.kind.capitalize()} group '{group_id}' is not EMPTY."
                failed[group_id] = f"{java.ERRORS}GroupNotEmptyException: {why}"
        return [group_id for group_id in asked if group_id not in failed], failed


def group_tool(tool: type[GroupTool], check: Callable[[Options], None]) -> Callable[[Sequence[str] | None], int]:
    """The program that reads and checks the arguments, and executes. Only errors of the parser are printed without the
    help.
    """

    def run(arguments: Sequence[str]) -> int:
        options = read_options(tool.table, arguments, check)
        return options if isinstance(options, int) else execute(tool, options)

    return drop_in.tool(run)


def execute(tool: type[GroupTool], options: Options) -> int:
    """Carry out the one action; the result is the exit status."""
    return carry_out(tool.table, _act(tool, options), tell=tool.tell, with_help=tool.usage_errors)


def _opened(options: Options) -> tuple[Admin, Converted]:
    """The client, whose calls take as long as the options say, and the values of these."""
    try:
        values = converted(options)
    except OptionProblem:
        open_admin(options)  # says first, as the official tool does, why there is no client
        raise
    return open_admin(options, timeout_ms=values.timeout_ms), values


async def _act(tool: type[GroupTool], options: Options) -> int:
    admin, values = _opened(options)
    try:
        actions = tool(admin, options, values)
        if options.has("list"):
            status = await actions.list()
        elif options.has("describe"):
            status = await actions.describe()
        elif options.has("delete"):
            status = await actions.delete()
        elif options.has("reset-offsets"):
            status = await actions.reset_offsets()
        else:
            status = await actions.delete_offsets()
    finally:
        await admin.close()
    return status or 0
