"""``groupkeeper apply``: carry out a plan, if what it was made from is still so."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

from groupkeeper.cli.applying import add_applying, apply_pages, ask_back, check_confirmed
from groupkeeper.cli.clusters import Asking, Report, UsageMistake, add_cluster, run_report
from groupkeeper.cli.commands import Command
from groupkeeper.cli.plan_shapes import OUTCOMES
from groupkeeper.cli.plan_writing import STANDARD_OUTPUT, connection_of
from groupkeeper.cli.reports import Page
from groupkeeper.operations.plans import document, official
from groupkeeper.operations.plans.document import BadPlanFile
from groupkeeper.operations.plans.model import Plan

if TYPE_CHECKING:
    from groupkeeper.cli.commands import ArgumentParser


def plan_of(path: str) -> Plan:
    """The plan in a file, of standard input when it is ``-``."""
    try:
        text = sys.stdin.buffer.read() if path == STANDARD_OUTPUT else Path(path).read_bytes()
        return document.read(text.decode("utf-8-sig"))
    except OSError as problem:
        raise ArgumentTypeError(f"cannot read {path!r}: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise ArgumentTypeError(f"{path!r} is no text in UTF-8: byte {problem.start + 1}") from None
    except BadPlanFile as problem:
        raise ArgumentTypeError(f"{path!r}: {problem}") from None


def _add_arguments(command: ArgumentParser) -> None:
    command.add_argument("plan", type=plan_of, metavar="FILE", help="the plan; -: standard input")
    add_applying(command)
    command.add_argument(
        "--show-command",
        action="store_true",
        help="print the official tool's commands that do the same, and do nothing",
    )
    add_cluster(command)


def _report(options: Namespace) -> Report:
    if options.show_command:
        if options.output != "table":
            raise UsageMistake(f"argument --show-command: not allowed with --output {options.output}")
        return Report(OUTCOMES, _commands, is_plain=True)
    check_confirmed(options, options.plan)
    return Report(OUTCOMES, _pages)


async def _commands(asking: Asking) -> AsyncIterator[Page]:
    lines = official.commands(asking.options.plan, connection_of(asking.options))
    yield Page(plain="".join(f"{line}\n" for line in lines))


async def _pages(asking: Asking) -> AsyncIterator[Page]:
    ask_back(asking.options, asking.options.plan)
    async for page in apply_pages(asking, asking.options.plan):
        yield page


APPLY = Command(
    _add_arguments,
    lambda options: run_report(options, _report),
    "Carry out a plan. It is refused when offsets, partitions or logs have moved since it was made, or when a group "
    "has members. What is done is journalled before, and read back after.",
    """\
examples:
  groupkeeper apply plan.json
  groupkeeper apply plan.json --wait 5m --confirm 12""",
)
