"""Common parts of the commands with the names of official tools: start, exit, and the cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from groupkeeper.cli.dropin.options import OptionProblem, Options, OptionTable, UsageProblem, render
from groupkeeper.cli.framework import garbage
from groupkeeper.cli.framework.output import complain, say, written
from groupkeeper.cli.java import values as java
from groupkeeper.cli.java.releases import UnknownRelease, release
from groupkeeper.client.admin.types import GroupState
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.errors import OperationRefused
from groupkeeper.protocol.errors import KafkaError


class ExecutionFailure(Exception):
    """The command could not be carried out. The text is that of the official tool's exception."""


class PropertiesUnreadable(ExecutionFailure):
    """The file of properties could not be read. `reason` is the text without the Java class in front."""

    def __init__(self, java_class: str, reason: str) -> None:
        super().__init__(f"{java_class}: {reason}")
        self.reason = reason


@contextmanager
def failing(text_of: Callable[[Exception], str]) -> Iterator[None]:
    """Turns errors of brokers and the client into an ExecutionFailure with the official tool's text."""
    try:
        yield
    except OperationRefused:
        raise
    except (KafkaError, ClientError) as error:
        raise ExecutionFailure(text_of(error)) from error


def states_of(text: str, valid: Sequence[GroupState]) -> list[GroupState]:
    """The states of a list separated by commas, any of them in any case. Raises UsageProblem."""
    states = [GroupState.parse(java.trim(part)) for part in java.split(text, ",")] if text else []
    if not set(states) <= set(valid):
        raise UsageProblem(f"Invalid state list '{text}'. Valid states are: {', '.join(valid)}")
    return states


def log_warning(text: str, logger: str) -> None:
    """Logs a warning as the official tools do."""
    from datetime import datetime

    time = datetime.now().strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
    complain(f"[{time}] WARN {text} ({logger})\n")


def run_tool(run: Callable[[Sequence[str]], int], arguments: Sequence[str] | None) -> int:
    """Run a tool with its arguments, None: those of this program; the result is the exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    # Bytes that are no UTF-8 become question marks in diamonds, as Java reads them.
    words = [word.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for word in words]
    try:
        release()
    except UnknownRelease as problem:
        complain(f"{problem}\n")
        return 1
    # The tool ends soon: looking for cycles would take more time than it saves memory.
    garbage.stop_looking()
    # What the terminal's encoding lacks becomes a question mark, as Java writes it.
    status = written(lambda: run(words), unencodable="replace")
    if arguments is None:
        garbage.keep_all()  # at its end Python would look through all of it once more
    return status


def read_options(
    table: OptionTable,
    arguments: Sequence[str],
    check: Callable[[Options], None],
    *,
    with_help: tuple[type[Exception], ...] = (UsageProblem, OptionProblem),
) -> Options | int:
    """The options, or the exit status if there is nothing left to do.

    Errors of the parser are printed without the help; errors of `check` with it, if they are of `with_help`.
    """
    if not arguments:
        return refuse_usage(table)
    try:
        options = table.parse(arguments)
    except OptionProblem as problem:
        complain(f"{problem}\n")
        return 1
    status = show_help_or_version(table, options)
    if status is not None:
        return status
    try:
        check(options)
    except with_help as problem:
        return refuse_usage(table, str(problem))
    except OptionProblem as problem:
        complain(f"{problem}\n")
        return 1
    return options


def show_help_or_version(table: OptionTable, options: Options) -> int | None:
    """Handles --help and --version; the exit status, or None without these options."""
    if options.has("help"):
        return refuse_usage(table)
    if options.has("version"):
        say(f"{release().version}\n")
        return 0
    return None


def refuse_usage(table: OptionTable, text: str | None = None) -> int:
    """Prints the error (None: the tool's purpose) and the help; returns the exit status 1."""
    shown = release().purposes.get(table.tool, table.purpose) if text is None else text
    complain(f"{shown}\n{render(table)}")
    return 1
