"""The command as it was typed, and what other commands need of it to be about the same cluster."""

from __future__ import annotations

import shlex
import sys
from argparse import Namespace

from groupkeeper.cli.framework.context_files import masked

_CLUSTER = ("--bootstrap-server", "--context", "--command-config")


def words_of(options: Namespace) -> tuple[str, ...]:
    """The command as it was typed."""
    return ("groupkeeper", *getattr(options, "words", sys.argv[1:]))


def follow_up(options: Namespace, *words: str) -> str:
    """Another command of groupkeeper on the same cluster, as it is to be typed."""
    cluster = [word for name in _CLUSTER for word in as_typed(options, name)]
    for name, value in getattr(options, "property", ()):
        cluster += ["--property", f"{name}={masked(name, value)}"]
    return shlex.join(["groupkeeper", *words, *cluster])


def as_typed(options: Namespace, name: str) -> list[str]:
    """An option with its value, nothing when it wasn't given. The last one counts."""
    typed = words_of(options)
    for at in range(len(typed) - 1, -1, -1):
        if typed[at] == name:
            return list(typed[at : at + 2])
        if typed[at].startswith(f"{name}="):
            return [name, typed[at].partition("=")[2]]
    return []
