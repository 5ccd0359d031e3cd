"""What commands say that are refused before any broker is asked, as one would see it at a terminal.

`refusals.txt` has the commands and what each prints, in the form of `tests.cli.golden`, behind comments about them.
`python -m tests.unit.cli.refusals` writes down what they print now.
"""

import contextlib
import io
import os
import re
import shlex
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from unittest import mock

from tests.cli import golden
from tests.cli.golden import Output

from groupkeeper.cli.main import main

CHOICES = re.compile(r"\(choose from .*?\)")
"""Later versions of Python show them without quotes."""
FILE = Path(__file__).with_name("refusals.txt")


def run(command: str) -> Output:
    """In this program, without contexts; variables of the environment may stand before the tool, as in a shell."""
    words = shlex.split(command)
    variables = dict(word.split("=", 1) for word in words[: next(i for i, word in enumerate(words) if "=" not in word)])
    tool, *rest = words[len(variables) :]
    call = main if tool == "groupkeeper" else import_module(f"groupkeeper.cli.dropin.{tool.replace('-', '_')}").main
    with (
        contextlib.redirect_stdout(io.StringIO()) as output,
        contextlib.redirect_stderr(io.StringIO()) as errors,
        mock.patch.dict(os.environ, {"XDG_CONFIG_HOME": "/nowhere", **variables}),
    ):
        try:
            status = call(rest)
        except SystemExit as ended:
            status = int(ended.code or 0)
    said = errors.getvalue()
    if said.startswith("usage: "):
        usage, error, told = said.partition("error: ")
        assert usage.count("\n") <= 2, "a usage takes no more than two lines"
        said = error + told
    said = CHOICES.sub(lambda found: found[0].replace("'", ""), said)
    lines = said.rstrip("\n").split("\n")
    shown = list(takewhile(lambda line: not golden.HELP.match(line), lines))
    return Output(status, output.getvalue(), "\n".join([*shown, *(["(help)"] if len(shown) < len(lines) else [])]))


def write() -> None:
    parts = FILE.read_text(encoding="utf-8").split("\n\n")
    for number, part in enumerate(parts):
        comments = [line for line in part.split("\n") if line.startswith("#")]
        found = golden.write({command: run(command) for command in golden.commands(part)}).strip("\n")
        parts[number] = "\n".join([*comments, *([found] if found else [])])
    FILE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
