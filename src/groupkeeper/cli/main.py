"""groupkeeper: the broker, and commands that do more than the drop-in commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from groupkeeper.cli.framework.output import Unwritable, complain, dismiss, status_of, written


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; the result is the exit status: 0, 1 when something failed, 2 for a wrong usage, as shells have it
    for a signal: 130 for Ctrl-C.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    return written(lambda: _run(words), unencodable="backslashreplace")


def _run(words: list[str]) -> int:
    if words[:1] == ["__complete"]:
        from groupkeeper.cli.framework.complete import complete

        return complete(words[1:])
    if words[:1] == ["__complete_tool"]:
        from groupkeeper.cli.drop_in_completion import complete_tool

        return complete_tool(words[1:])
    from groupkeeper.cli.framework.commands import parse

    options = parse(words)
    try:
        status: int = options.run(options)
    except (BrokenPipeError, Unwritable):
        raise
    except KeyboardInterrupt as interrupt:
        dismiss(interrupt)
        notes = "".join(getattr(interrupt, "__notes__", ()))
        complain(f"interrupted{getattr(options, 'interrupted', '')}{notes}\n")
        return status_of(interrupt)
    except Exception as error:
        if getattr(options, "debug", False):
            raise
        complain(f"error: {error or type(error).__name__} ({type(error).__name__})\n")
        return 1
    return status
