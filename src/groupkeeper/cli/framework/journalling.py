"""Which journal commands write to: ``GROUPKEEPER_JOURNAL`` is a file, ``off``, or not set for the platform's place."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from groupkeeper.cli.framework.typed import follow_up, words_of
from groupkeeper.operations.plans.journal import Journal, default_path
from groupkeeper.operations.plans.recording import Recorder

VARIABLE = "GROUPKEEPER_JOURNAL"
OFF = "off"


def journal() -> Journal | None:
    """The journal of this machine's user, None when it is turned off."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted == OFF:
        return None
    return Journal(Path(wanted).expanduser() if wanted else default_path())


def own_recorder(options: Namespace, remarks: list[str]) -> Recorder | None:
    """For commands that only warn when the journal cannot be written, and continue without it."""

    def tell(problem: str) -> None:
        remarks.append(f"the change is not journalled, and cannot be undone: {problem}")

    where = journal()
    return None if where is None else Recorder(where, words_of(options), tell)


def recorder(tool: str, on_failure: Callable[[str], None] | None) -> Recorder | None:
    """Journals what this program does, None when that is turned off. ``on_failure``: see Recorder."""
    where = journal()
    return None if where is None else Recorder(where, (tool, *sys.argv[1:]), on_failure)


def drop_in_recorder(tool: str) -> Recorder | None:
    """For tools that must print what the official ones print: a journal that cannot be written is passed over."""
    return recorder(tool, lambda problem: None)


def way_back(recorder: Recorder, options: Namespace) -> str:
    """How a change that was made is taken back."""
    return f"'{follow_up(options, 'undo', recorder.id)}' takes this back"
