"""The journal that commands write to: `GROUPKEEPER_JOURNAL`, else `journal.url` of the context, is a file, a topic
or `off`; without both it is a file at the platform's place.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from groupkeeper.cli.framework import context_files
from groupkeeper.cli.framework.clusters import admin_of, cluster_of
from groupkeeper.cli.framework.commands import UsageMistake
from groupkeeper.cli.framework.several_clusters import contexts_named
from groupkeeper.cli.framework.typed import follow_up, words_of
from groupkeeper.client.admin import Admin
from groupkeeper.operations.errors import OperationRefused
from groupkeeper.operations.plans.journal import ChangeJournal, Journal, default_path
from groupkeeper.operations.plans.recorder import Recorder
from groupkeeper.operations.plans.topic_journal import PATIENCE_MS, SCHEME, TopicJournal, split

VARIABLE = "GROUPKEEPER_JOURNAL"
OFF = "off"


def journal(options: Namespace | None = None) -> ChangeJournal | None:
    """The journal of this machine's user, or of the team; None when it is turned off. `options`: of a command that
    uses contexts, which may name it. Raises UsageMistake where they name several.
    """
    wanted = os.environ.get(VARIABLE, "") or ("" if options is None else _of_contexts(options))
    if wanted == OFF:
        return None
    if wanted.startswith(SCHEME):
        return journal_in(wanted)
    return Journal(Path(wanted).expanduser() if wanted else default_path())


def _of_contexts(options: Namespace) -> str:
    """The journal that the contexts in use name; "": none."""
    typed = [options.context] if isinstance(options.context, str) else options.context or []
    if not typed and not options.bootstrap_server:
        typed = [each for each in (os.environ.get(context_files.VARIABLE) or context_files.current(),) if each]
    known = {name: _named_by(name) for name in contexts_named(typed)}
    if len(set(known.values())) > 1:
        told = ", ".join(f"{name}: {where or 'none'}" for name, where in known.items())
        raise UsageMistake(f"the contexts name different journals ({told}): say which one with {VARIABLE}")
    return next(iter(known.values()), "")


def _named_by(context: str) -> str:
    try:
        return context_files.read(context).journal or ""
    except context_files.ContextProblem as problem:
        raise UsageMistake(str(problem)) from None


def journal_in(address: str) -> TopicJournal:
    """The journal at a `kafka://` address."""
    return TopicJournal(address, lambda: _admin_of(address))


def checked(address: str) -> TopicJournal:
    """As `journal_in`. Raises OperationRefused for an address that makes no client."""
    _admin_of(address)
    return journal_in(address)


def _admin_of(address: str) -> Admin:
    """A client for the topic at an address. Raises OperationRefused."""
    where, topic = split(address)
    if not where or not topic:
        raise OperationRefused(f"{address!r}: expected {SCHEME}HOST:PORT/TOPIC or {SCHEME}CONTEXT/TOPIC")
    named = (
        {"context": None, "bootstrap_server": where} if ":" in where else {"context": where, "bootstrap_server": None}
    )
    try:
        return admin_of(cluster_of(Namespace(**named, command_config=None)), PATIENCE_MS)
    except UsageMistake as mistake:
        raise OperationRefused(str(mistake)) from None


def own_recorder(options: Namespace, notes: list[str]) -> Recorder | None:
    """The recorder of commands that only warn when the journal cannot be written, and continue without it."""

    def tell(problem: str) -> None:
        notes.append(f"the change is not journalled, and cannot be undone: {problem}")

    return recorder(words_of(options), tell, options)


def recorder(
    words: Sequence[str], on_failure: Callable[[str], None] | None, options: Namespace | None = None
) -> Recorder | None:
    """A recorder of changes by the command of these words; None: the journal is turned off. `on_failure`: see Recorder;
    `options`: as of `journal`.

    Raises OperationRefused: a change that is not in the team's journal would be known to one machine only.
    """
    where = journal(options)

    def refuse(problem: str) -> None:
        raise OperationRefused(f"nothing was changed, as the journal cannot be written: {problem}")

    return None if where is None else Recorder(where, words, on_failure if isinstance(where, Journal) else refuse)


def way_back(recorder: Recorder | None, options: Namespace, *, has_changed: bool) -> list[str]:
    """The note about how to undo a change, where there is one that was journalled."""
    if recorder is None or not recorder.id or not has_changed:
        return []
    return [f"'{follow_up(options, 'undo', recorder.id)}' takes this back"]
