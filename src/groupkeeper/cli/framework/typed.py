"""The command as it was typed, and parts of it for commands on the same cluster."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress

from groupkeeper.cli.framework.clusters import Cluster
from groupkeeper.cli.framework.context_files import Context, ContextProblem, masked, names, path_of, read
from groupkeeper.shell import Way, command, text, way_of_servers


def words_of(options: Namespace) -> tuple[str, ...]:
    """The command as it was typed."""
    return ("groupkeeper", *getattr(options, "words", sys.argv[1:]))


def follow_up(options: Namespace, *words: str, names: Sequence[str] = (), context: str | None = None) -> str:
    """Another command of groupkeeper on the same cluster, as text to type. `names`: of groups and the like. `context`:
    that of the cluster, where the options may name several; None: as typed.
    """
    cluster = as_typed(options, "--bootstrap-server")
    cluster += as_typed(options, "--context") if context is None else ["--context", context]
    cluster += as_typed(options, "--command-config")
    return text(command(Way((*cluster, *_properties(options))), words, names))


def way_of(options: Namespace, cluster: Cluster) -> Way:
    """The way to one of the clusters that the options name, from every folder. Secrets of --property are left out."""
    typed = as_typed(options, "--command-config")
    config = os.path.abspath(typed[1]) if typed else ""
    more = _properties(options)
    if cluster.context is None:
        return way_of_servers(cluster.bootstrap_server, config, more)
    own = ("--command-config", config) if config else ()
    if not config:
        with suppress(ContextProblem):
            config = _config_of(read(cluster.context))
    return Way(("--context", cluster.context, *own, *more), cluster.bootstrap_server, config)


def ways_of_contexts() -> dict[str, Way]:
    """The ways to all clusters that are saved as contexts; files that cannot be read are left out."""
    found = {}
    for name in names():
        with suppress(ContextProblem):
            there = read(name)
            found[name] = Way(("--context", name), there.bootstrap_server, _config_of(there))
    return found


def _properties(options: Namespace) -> list[str]:
    """The typed properties as words, without secrets."""
    typed = getattr(options, "property", ())
    return [word for name, value in typed for word in ("--property", f"{name}={masked(name, value)}")]


def _config_of(context: Context) -> str:
    """The file with the properties of a context, for tools that know no contexts; "" where it has none."""
    return str(path_of(context.name)) if context.properties else context.command_config or ""


def as_typed(options: Namespace, name: str) -> list[str]:
    """An option with its last value, as words; empty: it wasn't given."""
    typed = words_of(options)
    for at in range(len(typed) - 1, -1, -1):
        if typed[at] == name:
            return list(typed[at : at + 2])
        if typed[at].startswith(f"{name}="):
            return [name, typed[at].partition("=")[2]]
    return []
