"""`groupkeeper pipeline forget`: rows of groups, taken out of all tables."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from groupkeeper.cli.framework.clusters import add_output, print_report
from groupkeeper.cli.framework.commands import Command
from groupkeeper.cli.framework.reports import Column, Page, Problem, Schema
from groupkeeper.cli.pipeline.family import add_directory, add_owners, add_spark
from groupkeeper.cli.pipeline.lake import settings_of
from groupkeeper.cli.pipeline.parts import import_part
from groupkeeper.cli.pipeline.watch import Screen
from groupkeeper.operations.selection import Names
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.rules.words import duration

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from groupkeeper.cli.framework.commands import ArgumentParser
    from groupkeeper.pipeline.governance.forget import Forgotten

_SHOWN = 20

FORGOTTEN = Schema(
    "pipeline-forget",
    "tables",
    [
        Column("table", "the table; the state that refreshes carry over is named by its folders"),
        Column("rows", "how many of its rows belong to the groups"),
        Column("files", "in how many of its files"),
    ],
)


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="a group, or a glob such as 'team-*'")
    parser.add_argument(
        "--owner", help="all groups of this owner in the file of owners, including groups that no longer exist"
    )
    add_owners(parser)
    parser.add_argument("--cluster", metavar="NAME", help="only rows of this cluster, by its name in the tables")
    add_directory(parser)
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--execute", action="store_true", help="remove the rows; without it, they are only counted")
    does.add_argument("--dry-run", action="store_true", help="only count them; the default")
    parser.add_argument(
        "--purge", action="store_true",
        help="with --execute, for tables of Delta Lake or Iceberg: remove all earlier versions, which have the rows",
    )  # fmt: skip
    add_output(parser)
    add_spark(parser)


def _run(options: Namespace) -> int:
    if bool(options.groups) == (options.owner is not None):
        options.refuse("which groups? name them, or give --owner OWNER with --owners FILE")
    if options.owner is not None and not options.owners:
        options.refuse("argument --owner: the file of owners says which groups are an owner's: give --owners FILE")
    if options.owner is not None and not any(each.owner == options.owner for each in options.owners):
        options.refuse(f"argument --owner: the file of owners has no {options.owner}")
    if options.purge and not options.execute:
        options.refuse("argument --purge: it removes earlier versions: give --execute, too")
    try:
        module = import_part("governance.forget")
        wanted = module.ForgetRequest(Names(options.groups), options.owner, tuple(options.owners), options.cluster)
        if options.execute:
            options.interrupted = ": tables of Delta Lake or Iceberg may still show the rows: run it again"
        screen = Screen()
        with screen.shown():
            found = module.forget(
                options.tables,
                wanted,
                execute=options.execute,
                purge=options.purge,
                session=lambda: _session(options),
                doing=screen.doing,
            )
    except SourceError as error:
        return print_report(options, FORGOTTEN, Page(problems=[Problem("REFUSED", str(error))]))
    rows = [
        {"table": name, "rows": count, "files": found.files.get(name)} for name, count in sorted(found.rows.items())
    ]
    return print_report(options, FORGOTTEN, Page(rows, (), _notes(options, found), {"executed": options.execute}))


def _session(options: Namespace) -> AbstractContextManager[Any]:
    """The Spark session, for tables of Delta Lake or Iceberg."""
    settings = settings_of(options)
    session: Callable[..., AbstractContextManager[Any]] = import_part("jobs.running").session
    return session("forget", master=options.master, remote=options.remote, settings=settings, is_short=True)


def _notes(options: Namespace, found: Forgotten) -> list[str]:
    if not found.rows:
        return ["no table has rows of these groups", *_versions(options, found)]
    more = len(found.groups) - _SHOWN
    names = ", ".join(found.groups[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    notes = [f"groups: {names}"]
    if not options.execute:
        notes.append("nothing is changed: add --execute to remove these rows")
    notes += _versions(options, found)
    notes += [f"{page} names these groups, too: write it again, or delete it" for page in found.pages]
    return notes


def _versions(options: Namespace, found: Forgotten) -> list[str]:
    if found.version_hours is None or not options.execute:
        return []
    if options.purge:
        return ["all earlier versions of the tables are removed"]
    kept = f"kept for {duration(round(found.version_hours * 3_600_000))}"
    return [f"earlier versions of the tables, {kept}, may have such rows: --purge removes all of them now"]


FORGET = Command(
    _add_arguments,
    _run,
    "Remove all rows of groups from the tables in DIR in one step: from the history, from all tables made from it, "
    "and from the state that refreshes carry over. Files that have such rows are rewritten. No run may write to DIR "
    "meanwhile. A group that still exists comes back with its next commits. Earlier versions of tables of "
    "Delta Lake or Apache Iceberg keep the rows until --purge, or until they are old enough to be removed.",
    """\
  groupkeeper pipeline forget 'team-a-*' --tables tables
  groupkeeper pipeline forget --owner team-a --owners owners.txt --tables tables --execute""",
)
