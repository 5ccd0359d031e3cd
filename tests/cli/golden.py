"""Recorded output of the official tools: how it is made comparable, written down and read again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TRACE = re.compile(r"^(?:\s+at .*|\s+\.\.\. \d+ more|\s*Caused by: .*|(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error)\b.*)$")
HELP = re.compile(r"^Option(?: \(\* = required\))? +Description *$")
STATES = re.compile(r"(Valid states are: )(.*)$", re.MULTILINE)
SCENARIOS = re.compile(r"(one of the following scenarios: \[)(.*)(\])$", re.MULTILINE)
LOG = re.compile(r"^\[\d{4}-\d\d-\d\d [\d:,]+\] (\w+) (.*)$")


class Output(NamedTuple):
    """What a command printed, and its exit status."""

    status: int
    output: str
    errors: str

    def comparable(self, servers: str, folder: Path) -> Output:
        """Without what differs from run to run, or what only Java prints; every width stays as it is."""
        host, _, port = servers.rpartition(":")

        def same(text: str) -> str:
            text = text.replace(f"{host}:{port}", f"{host}:" + "p" * len(port)).replace(str(folder), "{folder}")
            # The official tools have the states, and some have the scenarios, in another order in each run.
            text = STATES.sub(lambda match: match[1] + ", ".join(sorted(match[2].split(", "))), text)
            text = SCENARIOS.sub(lambda match: match[1] + ", ".join(sorted(match[2].split(", "))) + match[3], text)
            return UUID.sub("u" * 36, text)

        return Output(self.status, same(self.output), _without_java(same(self.errors)))


def _without_java(errors: str) -> str:
    """No stack traces, no logs but the tool's own warnings, no time in those, nothing of the help."""
    lines = []
    for line in errors.split("\n"):
        if HELP.match(line):
            lines.append("(help)")
            break
        log = LOG.match(line)
        if log:
            if re.search(r"\(org\.apache\.kafka\.tools\.\w+\)$", log[2]):
                lines.append(f"[time] {log[1]} {log[2]}")
        elif not TRACE.match(line):
            lines.append(re.sub(r'^Exception in thread "main" (?:[\w.$]+: )?', "", line))
    return "\n".join(lines).strip("\n")


def write(outputs: dict[str, Output]) -> str:
    """Commands with their output: `|` before its lines, `!` before those of standard error, then the exit status.

    A command is of kafka-consumer-groups unless another tool is named in front. They are run one after the other; one
    with `!` in front changes the offsets, which are then put back.
    """
    parts = []
    for command, run in outputs.items():
        lines = [f"$ {command}"]
        lines += [f"|{line}" for line in run.output.split("\n")] if run.output else []
        lines += [f"!{line}" for line in run.errors.split("\n")] if run.errors else []
        parts.append("\n".join([*lines, f"= {run.status}\n"]))
    return "\n".join(parts)


def commands(text: str) -> list[str]:
    """Those of a recording, and those that are to be recorded."""
    return [line[2:] for line in text.splitlines() if line.startswith("$ ")]


def read(text: str) -> dict[str, Output]:
    """The inverse of `write`."""
    outputs: dict[str, Output] = {}
    command = ""
    output: list[str] = []
    errors: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            command, output, errors = line[2:], [], []
        elif line.startswith("|"):
            output.append(line[1:])
        elif line.startswith("!"):
            errors.append(line[1:])
        elif line.startswith("= "):
            outputs[command] = Output(int(line[2:]), "\n".join(output), "\n".join(errors))
    return outputs
