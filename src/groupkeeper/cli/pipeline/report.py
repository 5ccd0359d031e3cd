"""`groupkeeper pipeline report`: the tables as a page of HTML, and a summary on the terminal."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.commands import Command
from groupkeeper.cli.framework.files import Unsaved, check_writable, save
from groupkeeper.cli.framework.output import complain, say
from groupkeeper.cli.framework.render import BOLD, GREEN, RED, WIDTH, YELLOW, room_for, shortened, width
from groupkeeper.cli.framework.terminal import columns_of, has_colour, is_terminal
from groupkeeper.cli.framework.typed import way_of, ways_of_contexts
from groupkeeper.cli.pipeline import family
from groupkeeper.cli.pipeline.parts import import_part
from groupkeeper.cli.pipeline.watch import Screen
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.report.moves import made_by, moves_of, sums
from groupkeeper.rules import words
from groupkeeper.rules.status import Status
from groupkeeper.rules.urgency import Urgency

if TYPE_CHECKING:
    from groupkeeper.cli.framework.commands import ArgumentParser
    from groupkeeper.pipeline.jobs.watch import Problem, Summary
    from groupkeeper.pipeline.kafka.planning import ReadPlan
    from groupkeeper.pipeline.report.model import Group, Report, Rewind, Stale
    from groupkeeper.shell import Ways

_FAILED = 1
_FILE = "report.html"
_BLOCKS = "▁▂▃▄▅▆▇█"
_HOURS = 24.0
_SHOWN = 16
"""The number of steps of lag over time in a line of text."""
_STYLES: dict[str, str] = {
    Status.OK: GREEN, Status.UNSTABLE: YELLOW, Status.LAGGING: YELLOW, Status.REWOUND: YELLOW, Status.STALLED: RED,
    Status.STOPPED: RED, Status.LOSING: RED,
}  # fmt: skip
_WIDEST = 48


def _add_arguments(parser: ArgumentParser) -> None:
    family.add_output(parser, "the report in short")
    parser.add_argument(
        "--output-file",
        metavar="FILE",
        help=f"where the page is written; default: {_FILE} in DIR, if DIR is on this machine",
    )
    parser.add_argument(
        "--top", type=values.between(1, 100), default=10, help="how many of the worst groups are plotted; default: 10"
    )
    parser.add_argument(
        "--last", type=_hours, default=_HOURS, metavar="DURATION",
        help="how much of the history to show, counted back from the last measurement: 90m, 24h, 7d; default: 24h",
    )  # fmt: skip
    family.add_clusters(parser, "no request is sent to a cluster; the tables are used as they are")
    family.add_sources(parser)


def _hours(text: str) -> float:
    return values.span_ms(text) / 3_600_000


def _run(options: Namespace) -> int:
    problems: Sequence[Problem] = ()
    names: dict[int, str] = {}
    is_refreshed = bool(options.bootstrap_server or options.context)
    if options.checkpoints and not is_refreshed:
        options.refuse("argument --checkpoint: name a cluster, too: without one the tables are not brought up to date")
    family.check_checkpoints(options)
    try:
        target = _target(options)
        if options.output_file:  # beside the tables, whose directory the run may make, it is writable if they are
            check_writable(target)
        reading, page = import_part("report.reading"), import_part("report.page")
        if is_refreshed:
            work = family.snapshot_work(options)

            def named(screen: Screen, source: dict[str, str], ask: Callable[[], ReadPlan], spark: Any) -> Summary:
                summary = work(screen, source, ask, spark)
                names.update({each.cluster: each.name for each in ask().ranges})
                return summary

            problems = family.do_job(options, "report", named, Screen()).problems
        report: Report = reading.read_report(
            options.tables,
            hours=options.last,
            top=options.top,
            journals=options.journals,
            note=lambda said: complain(f"note: {said}\n"),
            ways=_ways(options, names),
        )
        save(target, [page.page(report)])
    except (SourceError, Unsaved) as error:
        complain(f"error: {error}\n")
        if options.output == "json":
            say(_json_text(None, None, [{"cluster": None, "message": str(error)}]))
        return _FAILED
    if options.output == "json":
        say(_json_text(report, target, [each._asdict() for each in problems]))
    else:
        limit = max(WIDTH, columns_of(sys.stdout)) if is_terminal(sys.stdout) else None
        short = summary_text(report, is_coloured=has_colour(sys.stdout, "auto"), limit=limit)
        say(f"{short}\nreport: {target}\n")
    return _FAILED if problems else 0


def _ways(options: Namespace, names: Mapping[int, str]) -> Ways:
    """The ways to clusters that are saved as contexts, or named by options, for the commands in the report. `names`:
    the clusters' names in the tables, by their numbers.
    """
    named = family.named_clusters(options) if options.bootstrap_server or options.context else []
    return ways_of_contexts() | {
        names.get(number, name): way_of(options, cluster) for number, (name, cluster) in enumerate(named)
    }


def _target(options: Namespace) -> str:
    if options.output_file:
        return str(options.output_file)
    local = import_part("checkpoints.folders").local_path(options.tables)
    if local is None:
        options.refuse(f"{options.tables} is not on this machine: give the file of the page with --output-file")
    return os.path.join(local, _FILE)


def summary_text(report: Report, *, is_coloured: bool = False, limit: int | None = None) -> str:
    """The report in short; colours are all that a terminal gets beside text. `limit`: names are cut to that width."""
    from groupkeeper.pipeline.report import page

    tone, sentence = page.headline(report)
    lines = []
    if report.since is not None and report.until is not None:
        lines.append(f"{words.moment(report.since)} to {words.moment(report.until)} UTC")
    lines.append(_painted(sentence, {"good": GREEN, "bad": RED}.get(tone, "") if is_coloured else ""))
    lines += page.unmeasured(report)
    if report.missing:
        lines.append(f"not in the directory: {', '.join(report.missing)}")
    for title, heads, rows, total in (_clusters(report), _worst(report), _rewinds(report), _stale(report)):
        lines += _table(title, heads, rows, is_coloured, total, limit)
    return "\n".join(lines) + "\n"


_Section = tuple[str, list[str], list[list[str]], int]
"""A section: title, headings, rows, and the total number of rows."""


def _clusters(report: Report) -> _Section:
    heads = ["CLUSTER", "GROUPS", "MEMBERS", "LAG", "TIME-LAG", "COMMITS", "REBALANCES"]
    rows = [
        [words.name(each.cluster), f"{each.groups:,}", f"{each.members:,}", words.number(each.lag),
         words.duration(each.lag_ms), f"{each.commits:,}", f"{each.rebalances:,}"]
        for each in report.clusters
    ]  # fmt: skip
    return "Clusters", heads, rows, len(rows)


def _worst(report: Report) -> _Section:
    bad = [each for each in report.groups if each.urgency is not Urgency.NONE or each.lag]
    lines = {(each.cluster, each.group_id): [lag for _, lag in each.known] for each in report.lag_lines}
    rows = [
        [each.status, *_names(report, each), words.number(each.lag), words.duration(each.lag_ms),
         _spark(lines.get((each.cluster, each.group_id), []))]
        for each in bad[: report.top]
    ]  # fmt: skip
    heads = ["STATUS", *_name_heads(report), "LAG", "TIME-LAG", "LAG-OVER-TIME"]
    return "Worst groups", heads, rows, len(bad)


def _rewinds(report: Report) -> _Section:
    moves = moves_of(report.rewinds)
    rows = [
        [words.moment(each.until), *_names(report, each.change)[:-1],
         words.name(each.groups[0]) + " …" * (len(each.groups) > 1), words.number(each.partitions),
         *(words.number(one or None) for one in sums(each.rewinds)), made_by(each)]
        for each in moves[: report.top]
    ]  # fmt: skip
    heads = ["WHEN", *_name_heads(report), "PARTITIONS", "AGAIN", "SKIPPED", "BY"]
    return "Rewinds and jumps", heads, rows, len(moves)


def _stale(report: Report) -> _Section:
    rows = [
        [*_names(report, each), words.name(each.reason), words.number(each.offsets or None), words.days(each.idle_days),
         words.number(each.lost)]
        for each in report.stale[: report.top]
    ]  # fmt: skip
    heads = [*_name_heads(report), "REASON", "OFFSETS", "IDLE", "RECORDS-LOST"]
    return "Stale groups", heads, rows, len(report.stale)


def _name_heads(report: Report) -> list[str]:
    return ["CLUSTER", "GROUP"] if len(report.clusters) > 1 else ["GROUP"]


def _names(report: Report, row: Group | Rewind | Stale) -> list[str]:
    return [words.name(row.cluster)] * (len(report.clusters) > 1) + [words.name(row.group_id)]


def _spark(lags: Sequence[int]) -> str:
    """A line of blocks: the highest lag of each step, on a scale from 0."""
    if not lags:
        return "-"
    size = max(1, -(-len(lags) // _SHOWN))
    steps = [max(lags[first : first + size]) for first in range(0, len(lags), size)]
    top = max(1, *steps, 1)
    return "".join(_BLOCKS[step * (len(_BLOCKS) - 1) // top] for step in steps)


def _table(
    title: str, heads: list[str], rows: list[list[str]], is_coloured: bool, total: int, limit: int | None
) -> list[str]:
    """The lines of a section: title, headings and rows, numbers on the right. Empty without rows."""
    if not rows:
        return []
    left = f", the first {len(rows)} of {total:,}" if total > len(rows) else ""
    columns = list(zip(heads, *rows, strict=True))
    to_right = [all(map(_is_amount, column[1:])) for column in columns]
    if limit is not None:
        whole = {at: max(map(width, column)) for at, column in enumerate(columns)}
        room = room_for(whole, [at for at in whole if not to_right[at]], limit)
        rows = [
            [
                text if width(text) <= room.get(at, whole[at]) else shortened(text, room[at])
                for at, text in enumerate(row)
            ]
            for row in rows
        ]
        columns = list(zip(heads, *rows, strict=True))
    sizes = [min(_WIDEST, max(map(width, column))) for column in columns]
    lines = ["", _painted(title, BOLD if is_coloured else "") + left]
    for row in [heads, *rows]:
        cells: list[str] = []
        for text, size, is_right in zip(row, sizes, to_right, strict=True):
            blank = " " * (size - width(text))
            style = _STYLES.get(text, "") if is_coloured and row is not heads and not cells else ""
            cells.append(blank + text if is_right else _painted(text, style) + blank)
        lines.append("  ".join(cells).rstrip())
    return lines


def _is_amount(text: str) -> bool:
    return text[:1].isdigit() or text[:1] in "—-" or text == "under 1 s"


def _painted(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if style else text


def _json_text(report: Report | None, target: str | None, problems: list[dict[str, Any]]) -> str:
    found: dict[str, Any] = {"schema": "pipeline-report/1", "report": target}
    if report is not None:
        found |= {name: getattr(report, name) for name in ("measured_time", "since", "until", "missing")}
        found["refresh"] = None if report.refresh is None else report.refresh._asdict()
        for name in ("findings", "unmeasured", "clusters", "groups", "rewinds", "stale", "activity", "lag_lines"):
            found[name] = [each._asdict() for each in getattr(report, name)]
    return json.dumps({**found, "problems": problems}, indent=2, default=_plain) + "\n"


def _plain(value: object) -> str:
    assert isinstance(value, datetime)
    return value.isoformat()


REPORT = Command(
    _add_arguments,
    _run,
    "Show the tables in DIR: status of the groups, lag over time, commits, rebalances, rewinds and stale groups, as "
    "one self-contained page of HTML, with a summary. Where clusters are named, the tables are "
    "brought up to date first, as by snapshot; otherwise neither Spark nor a cluster is needed.",
    """\
  groupkeeper pipeline report --bootstrap-server localhost:9092 --tables tables
  groupkeeper pipeline report --tables tables --last 7d --output-file week.html""",
)
