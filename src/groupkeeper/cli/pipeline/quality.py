"""`groupkeeper pipeline quality`: whether the tables can be relied on, as rows and an exit status."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.clusters import add_output, print_report
from groupkeeper.cli.framework.commands import Command
from groupkeeper.cli.framework.reports import Column, Page, Problem, Row, Schema
from groupkeeper.cli.pipeline.family import add_clusters, add_directory, source_of
from groupkeeper.cli.pipeline.parts import import_part
from groupkeeper.pipeline.errors import SourceError

if TYPE_CHECKING:
    from groupkeeper.cli.framework.commands import ArgumentParser
    from groupkeeper.pipeline.present.quality import Check

BROKEN = 3
"""The exit status when a check fails."""

CHECKS = Schema(
    "pipeline-quality",
    "checks",
    [
        Column("result", "`failed`; `unknown`: something that the check needs is missing; `ok`, with `--show-ok`"),
        Column("check", "`schema`, `files`, `keys`, `gaps`, `counts`, `history`, `rejects`, `freshness` or `age`"),
        Column("table", "the table; null: the directory or its history"),
        Column("cluster", "the cluster; null: all clusters"),
        Column("found", "how many rows, offsets or partitions fail the check"),
        Column("detail", "the finding, in a sentence"),
    ],
)


def _add_arguments(parser: ArgumentParser) -> None:
    add_directory(parser)
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--max-rejects", type=values.number, default=0,
        help="how many records of each cluster may have failed to decode; default: 0",
    )  # fmt: skip
    limits.add_argument("--max-age", type=values.span_ms, help="how old the last measurement may be: 1h, 1d")
    parser.add_argument("--show-ok", action="store_true", help="also show checks that are ok")
    add_clusters(parser, "no log is read; offsets without a row are unknown")
    add_output(parser)


def _run(options: Namespace) -> int:
    try:
        parsed = None
        if options.bootstrap_server or options.context:
            parsed = import_part("kafka.options").parse_options({**source_of(options), "rows": "decoded"})
        found, problems = import_part("governance.quality").check_directory(
            options.tables, parsed, max_age_ms=options.max_age
        )
    except SourceError as error:
        return print_report(options, CHECKS, Page(problems=[Problem("UNREADABLE", str(error))]))
    checks = [_allowed(each, options.max_rejects) for each in found]
    shown = [each for each in checks if options.show_ok or each.result != "ok"]
    failed = sum(each.result == "failed" for each in checks)
    unknown = sum(each.result == "unknown" for each in checks)
    notes = [f"{len(checks)} checks: {len(checks) - failed - unknown} ok, {unknown} unknown, {failed} failed"]
    page = Page([_row(each) for each in shown], [Problem("UNREADABLE", each) for each in problems], notes)
    return print_report(options, CHECKS, page) or (BROKEN if failed else 0)


def _allowed(check: Check, max_rejects: int) -> Check:
    is_allowed = check.check_name == "rejects" and check.found <= max_rejects
    return check._replace(result="ok") if is_allowed else check


def _row(check: Check) -> Row:
    return {
        "result": check.result, "check": check.check_name, "table": check.table_name, "cluster": check.cluster,
        "found": check.found, "detail": check.detail,
    }  # fmt: skip


QUALITY = Command(
    _add_arguments,
    _run,
    "Check all rows of the tables in DIR: schema versions, files, unique keys, offsets of the log without a row, "
    "tables that must have the same number of rows, records that could not be decoded, freshness. Where clusters are "
    "named, their logs are read, and all their records must be in the history. The exit status is 3 when a check "
    "fails. Neither Spark nor a cluster is needed.",
    """\
  groupkeeper pipeline quality --tables tables
  groupkeeper pipeline quality --tables tables --bootstrap-server localhost:9092 --max-age 1h""",
)
