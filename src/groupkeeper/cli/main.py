"""groupkeeper: the broker, and the better form of what the drop-in commands do."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; the result is the exit status: 0, 1 when something failed, 2 for a wrong usage."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["broker"]:
        # Before argparse is imported: the broker starts often, and has its own options.
        from groupkeeper.cli.broker import run

        return run(words[1:])
    from groupkeeper.cli.arguments import parser

    options = parser().parse_args(words)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = None  # the reader has enough
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if options.debug:
            raise
        sys.stderr.write(f"error: {error or type(error).__name__} ({type(error).__name__})\n")
        return 1
    return status
