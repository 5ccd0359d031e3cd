"""The stages that the official tools' output is recorded of, and the comparison with what is recorded."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.cli import golden
from tests.cli.golden import Output
from tests.cli.stages import ACTIVE, EMPTY, GOLDENS, INACTIVE, SHARE, SHARE_EMPTY, Stage, arguments, put_back, tool_of
from tests.cli.stages_of_kafka_4_4 import SHARE_4_4, STREAMS_4_4
from tests.cli.streams_stages import STREAMS, STREAMS_CHANGES, STREAMS_EMPTY

STAGES = (EMPTY, INACTIVE, ACTIVE, SHARE_EMPTY, SHARE, SHARE_4_4, STREAMS_EMPTY, STREAMS, STREAMS_4_4, STREAMS_CHANGES)

Run = Callable[[str, Sequence[str]], Output]
"""Runs a tool with its arguments."""


def differing(stage: Stage, servers: str, folder: Path, run: Run) -> dict[str, tuple[Output, Output]]:
    """Of a stage that is set up, the commands that print something else than is recorded: what is, and theirs."""
    recorded = golden.read((GOLDENS / f"{stage.name}.txt").read_text())
    found = {}
    for command, theirs in recorded.items():
        ours = run(tool_of(command), arguments(command, servers, folder)).comparable(servers, folder)
        if not _same(command, ours, theirs):
            found[command] = (theirs, ours)
        if command.startswith("!"):
            asyncio.run(put_back(stage, servers))
    return found


def _same(command: str, ours: Output, theirs: Output) -> bool:
    return sorted_lines(ours) == sorted_lines(theirs) if _has_hash_order(command) else ours == theirs


def _has_hash_order(command: str) -> bool:
    """Whether the official tool prints rows in the order of a hash table."""
    return "--reset-offsets" in command or "--list" in command or command.startswith("kafka-streams-groups --describe")


def sorted_lines(run: Output) -> tuple[int, list[str], list[str]]:
    """In any order: the official tool prints the rows of a hash table as they come."""
    return run.status, sorted(run.output.split("\n")), sorted(run.errors.split("\n"))
