"""Common parts of the commands with the names of official tools: start, exit, and the cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from groupkeeper.cli.dropin.options import OptionProblem, Options, OptionTable, UsageProblem, render
from groupkeeper.cli.framework import garbage
from groupkeeper.cli.framework.output import complain, say, written
from groupkeeper.cli.java import values as java
from groupkeeper.cli.java.releases import UnknownRelease, release
from groupkeeper.client.admin.types import GroupState
from groupkeeper.client.errors import ClientError
from groupkeeper.coroutines import run_coroutine
from groupkeeper.operations.errors import OperationRefused
from groupkeeper.protocol.errors import KafkaError

Tell = Callable[[Exception], int]
"""Writes a failure, and returns the exit status."""


class ExecutionFailure(Exception):
    """The command could not be carried out. The text is that of the official tool's exception."""


class Refusal(Exception):
    """The command ends with exit status 1 and this text on standard error."""


FAILURES = (ExecutionFailure, Refusal, OptionProblem, UsageProblem, KafkaError, ClientError)


class PropertiesUnreadable(ExecutionFailure):
    """The file of properties could not be read. `reason` is the text without the Java class in front."""

    def __init__(self, java_class: str, reason: str) -> None:
        super().__init__(f"{java_class}: {reason}")
        self.reason = reason


def is_of_brokers(problem: Exception) -> bool:
    """Whether brokers, or the client on the way to them, failed. The text is then not the tool's own."""
    return isinstance(problem, KafkaError | ClientError) and not isinstance(problem, OperationRefused)


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


def tool(run: Callable[[Sequence[str]], int]) -> Callable[[Sequence[str] | None], int]:
    """The tool as a program with these arguments, None: those of the command line; its result is the exit status."""

    def main(arguments: Sequence[str] | None = None) -> int:
        words = sys.argv[1:] if arguments is None else arguments
        # Bytes that are no UTF-8 become question marks in diamonds, as Java reads them.
        words = [word.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for word in words]
        try:
            release()
        except UnknownRelease as problem:
            return tell_plainly(problem)
        # The tool ends soon: looking for cycles would take more time than it saves memory.
        garbage.stop_looking()
        # What the terminal's encoding lacks becomes a question mark, as Java writes it.
        status = written(lambda: run(words), unencodable="replace")
        if arguments is None:
            garbage.keep_all()  # at its end Python would look through all of it once more
        return status

    return main


def tell_plainly(problem: object) -> int:
    """Writes a failure to standard error; returns the exit status 1."""
    complain(f"{problem}\n")
    return 1


def read_options(
    table: OptionTable,
    arguments: Sequence[str],
    check: Callable[[Options], object],
    *,
    tell: Tell = tell_plainly,
    with_help: tuple[type[Exception], ...] = (UsageProblem, OptionProblem),
    parser_has_help: bool = False,
    version: str | None = None,
) -> Options | int:
    """The options, or the exit status if there is nothing left to do.

    Errors of `check` are shown above the help if they are of `with_help`, errors of the parser if `parser_has_help`;
    `tell` writes the others. `version`: of the tool; None: that of the release which it equals.
    """
    if not arguments and not any(option.required for option in table.options.values()):
        return refuse_usage(table)
    try:
        options = table.parse(arguments)
    except OptionProblem as problem:
        return refuse_usage(table, str(problem)) if parser_has_help else tell(problem)
    if options.has("help"):
        return refuse_usage(table)
    if options.has("version"):
        say(f"{version or release().version}\n")
        return 0
    try:
        check(options)
    except with_help as problem:
        return refuse_usage(table, str(problem))
    except OptionProblem as problem:
        return tell(problem)
    return options


def carry_out(
    table: OptionTable,
    action: Coroutine[Any, Any, int | None],
    *,
    tell: Tell = tell_plainly,
    with_help: tuple[type[Exception], ...] = (),
    failures: tuple[type[Exception], ...] = FAILURES,
) -> int:
    """Carries the action out; the result is the exit status, 0 for an action that returns None.

    `failures` of `with_help` are shown above the help; `tell` writes the others.
    """
    try:
        return run_coroutine(action) or 0
    except with_help as problem:
        return refuse_usage(table, str(problem))
    except failures as problem:
        return tell(problem)


def refuse_usage(table: OptionTable, text: str | None = None) -> int:
    """Prints the error (None: the tool's purpose) and the help; returns the exit status 1."""
    shown = release().purposes.get(table.tool, table.purpose) if text is None else text
    complain(f"{shown}\n{render(table)}")
    return 1
