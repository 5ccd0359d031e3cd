"""kafka-consumer-group-reset, the tool of KIP-122's first version. Kafka never shipped it: the document is followed.

The plan (--generate without --output-file) and the results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path

from groupkeeper import __version__
from groupkeeper.cli.dropin.drop_in import FAILURES, Refusal, carry_out, read_options, tell_plainly, tool
from groupkeeper.cli.dropin.groups_text import Grows, known
from groupkeeper.cli.dropin.groups_text import table as table_of
from groupkeeper.cli.dropin.options import Option, OptionProblem, Options, OptionTable, UsageProblem
from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.files import Unsaved, check_writable, save
from groupkeeper.cli.framework.journals import recorder
from groupkeeper.cli.framework.output import complain, say
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import GroupState
from groupkeeper.operations import group_reset
from groupkeeper.operations.errors import GroupIsActive
from groupkeeper.operations.group_reset import EntryState, PlanEntry, ResetReport
from groupkeeper.operations.plans import kip122
from groupkeeper.operations.plans.kip122 import BadResetPlan, ResetPlan
from groupkeeper.operations.problems import error_name
from groupkeeper.operations.times import BadDatetime, BadDuration
from groupkeeper.operations.xsd_times import parse_xsd_datetime, parse_xsd_duration
from groupkeeper.protocol.errors import KafkaError

TOOL = "kafka-consumer-group-reset"
OPERATIONS = ("generate", "verify", "execute", "generate-and-execute")
READING = ("verify", "execute")
"""Operations on a plan that there is."""
DATETIMES = ("reset-to-datetime", "reset-to-timestamp")
OUTPUTS = ("output-file", "output")
GENERATING = ("group", "topics", "reset-from-period", *DATETIMES, *OUTPUTS)
COLUMNS = ("GROUP", "TOPIC", "PARTITION", "PLAN-OFFSET", "CURRENT-OFFSET", "OLDEST-OFFSET", "LATEST-OFFSET", "STATUS")
NOTHING_DONE = "nothing will be executed for it"

TABLE = OptionTable(
    TOOL,
    "Resets the committed offsets of a consumer group by a plan that is generated, verified and executed.",
    [
        Option("bootstrap-server", "The brokers to connect to first. Always needed.", "HOST1:PORT1,...,HOST3:PORT3"),
        Option("command-config", "A file of properties for the admin client.", "config file"),
        Option("timeout", "Time for each call to the brokers.", "timeout (ms)", "Long", default=30000),
        Option("generate", "Write a plan: the offsets of a time, or the current ones. Changes nothing."),
        Option("verify", "Compare a plan with the cluster. Changes nothing."),
        Option("execute", "Commit the offsets of a plan. The group must have no members."),
        Option("generate-and-execute", "Both, without a file in between."),
        Option("group", "The group. Needed by --generate and --generate-and-execute.", "consumer group"),
        Option("topics", "Topics, separated by commas; all that the group consumes when left out.", "topic1,topic2"),
        Option(
            "reset-to-datetime",
            "To the first records from this time on, an xsd:dateTime: 2017-01-01T09:00:00.000, UTC unless it ends "
            "with Z or +01:00.",
            "dateTime",
        ),
        Option("reset-to-timestamp", "The same as --reset-to-datetime.", "dateTime"),
        Option(
            "reset-from-period",
            "To the first records from so long ago on, an xsd:duration: P1M (a month), PT1M (a minute), P1DT2H.",
            "duration",
        ),
        Option("output-file", "Where to write the plan; standard output when left out.", "path"),
        Option("output", "The same as --output-file.", "path"),
        Option("reset-json-file", "The plan that --verify and --execute read.", "path"),
        Option("debug", "Show the traceback of an error."),
        Option("version", "Show the version.", is_help=True),
    ],
)


@tool
def main(arguments: Sequence[str]) -> int:
    """Read the arguments, and carry out the one operation."""
    options = read_options(TABLE, arguments, operation_of, parser_has_help=True, version=__version__)
    if isinstance(options, int):
        return options
    operation = operation_of(options)
    action = _with_plan if operation in READING else _generate
    tell = _shown if options.has("debug") else _tell
    usage, failures = (UsageProblem, OptionProblem), (*FAILURES, Unsaved)
    return carry_out(TABLE, action(options, operation), tell=tell, with_help=usage, failures=failures)


def _shown(problem: Exception) -> int:
    """With --debug a failure is shown with its traceback, but for that of a group with members."""
    if isinstance(problem, GroupIsActive):
        return _tell(problem)
    raise problem


def _tell(problem: Exception) -> int:
    if isinstance(problem, GroupIsActive):
        return tell_plainly(f"Error: group {problem.group_id}: {problem}; nothing was changed")
    code = f" ({error_name(problem)})" if isinstance(problem, KafkaError) else ""
    return tell_plainly(f"Error: {problem}{code}")


def operation_of(options: Options) -> str:
    """The operation, whose options fit. Raises UsageProblem."""
    operation = options.need_one_action(OPERATIONS)
    reads = operation in READING
    for name in options.given(GENERATING if reads else ("reset-json-file",)):
        raise UsageProblem(f'Option "[{operation}]" can\'t be used with option "[{name}]"')
    for name in ("bootstrap-server", "reset-json-file" if reads else "group"):
        if not options.text(name):
            raise UsageProblem(f'Missing required argument "[{name}]"')
    options.refuse_several((*DATETIMES, "reset-from-period"))
    options.refuse_several(OUTPUTS)
    for name in options.given(("topics", *OUTPUTS)):
        if not options.text(name):
            raise UsageProblem(f'Option "[{name}]" has no value')
    if options.strays:
        raise UsageProblem(f"{options.strays[0]!r} belongs to no option")
    timeout_ms(options)
    return operation


def timeout_ms(options: Options) -> int:
    """The time for each call. Raises UsageProblem."""
    timeout = options.number("timeout") or 0
    if not 0 < timeout < 2**31:
        raise UsageProblem(f"--timeout is {timeout}, and must be a number of milliseconds from 1 on")
    return timeout


def target_ms(options: Options) -> int | None:
    """The time to go to, None: the current offsets. Raises UsageProblem."""
    try:
        for name in options.given(DATETIMES):
            return parse_xsd_datetime(options.text(name) or "")
        if options.has("reset-from-period"):
            return parse_xsd_duration(options.text("reset-from-period") or "").before_ms(time.time_ns() // 10**6)
    except (BadDatetime, BadDuration) as problem:
        raise UsageProblem(str(problem)) from None
    return None


def topics_of(options: Options) -> list[str] | None:
    """The requested topics, None: all that the group consumes. Raises UsageProblem."""
    if not options.has("topics"):
        return None
    topics = [name.strip() for name in (options.text("topics") or "").split(",")]
    if not all(topics):
        raise UsageProblem("--topics has a topic without a name")
    return topics


def open_admin(options: Options) -> Admin:
    """The admin client for the options. Raises UsageProblem, Refusal."""
    try:
        servers = values.servers(options.text("bootstrap-server") or "")
        path = options.text("command-config")
        properties = {} if path is None else values.properties(path)
    except ArgumentTypeError as problem:
        raise UsageProblem(str(problem)) from None
    return Admin(servers, properties=properties, default_timeout_ms=timeout_ms(options))


async def _generate(options: Options, operation: str) -> int:
    timestamp_ms = target_ms(options)
    group_id = options.text("group") or ""
    topics = topics_of(options)
    path = next((options.text(name) for name in options.given(OUTPUTS)), None)
    if path is not None:
        check_writable(path)
    async with open_admin(options) as admin:
        if operation == "generate-and-execute":
            empty = await group_reset.examine(admin, ResetPlan(group_id, {}))
            empty.groups.refuse_active(group_id)
        made = await group_reset.generate(admin, group_id, topics, timestamp_ms)
        for warning in made.warnings:
            warn(warning)
        if path is not None:
            save(path, [kip122.write(made.plan)])
        if operation == "generate":
            _tell_of(made.report)
            complain(table(made.report))
            if path is None:
                say(kip122.write(made.plan))
            return 1 if made.report.failures else 0
        return await _execute(admin, made.report)


async def _with_plan(options: Options, operation: str) -> int:
    plan = read_plan(options.text("reset-json-file") or "")
    async with open_admin(options) as admin:
        report = await group_reset.examine(admin, plan)
        if operation == "execute":
            return await _execute(admin, report)
    _tell_of(report)
    say(table(report))
    return 1 if report.failures else 0


async def _execute(admin: Admin, report: ResetReport) -> int:
    report.groups.refuse_active(report.group_id)
    _tell_of(report)
    journalling = recorder((TOOL, *sys.argv[1:]), lambda problem: warn(f"the change is not journalled: {problem}"))
    offsets, troubles = await group_reset.execute(admin, report, journalling)
    rows = [(report.group_id, tp.topic, str(tp.partition), str(offset)) for tp, offset in sorted(offsets.items())]
    say(_columns(("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), rows))
    for trouble in troubles:
        where = trouble.topic_partition or trouble.group_id
        complain(f"Error: {where}: {trouble.failure} ({error_name(trouble.failure)})\n")
    return 1 if troubles or report.failures else 0


def read_plan(path: str) -> ResetPlan:
    """The plan in a file. Raises Refusal, before any broker is asked."""
    try:
        return kip122.read(Path(path).read_bytes().decode("utf-8-sig"))
    except OSError as problem:
        raise Refusal(f"cannot read {path}: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise Refusal(f"{path} is not UTF-8 text: byte {problem.start + 1}") from None
    except BadResetPlan as problem:
        raise Refusal(f"{path}: {problem}") from None


def _tell_of(report: ResetReport) -> None:
    """The group's state, a line for each warning, and the failed lookups."""
    state = "does not exist" if report.state is GroupState.DEAD else f"is {report.state}"
    complain(f"Group {report.group_id} {state}.\n")
    for entry in report.entries:
        if entry.failure is not None:
            complain(f"Error: {entry.topic_partition}: {entry.failure} ({error_name(entry.failure)})\n")
        elif entry.state is not EntryState.OK:
            warn(f"{entry.topic_partition}: {reason(entry)}")


def reason(entry: PlanEntry) -> str:
    """The problem of an entry, and its effect."""
    if entry.state is EntryState.OUT_OF_RANGE:
        end = "latest" if entry.applied == entry.log_end else "oldest"
        return f"offset {entry.planned} is out of range, it will be reset to the {end} offset {entry.applied}"
    return f"{entry.state.value}, {NOTHING_DONE}"


def warn(text: str) -> None:
    """A warning on standard error."""
    complain(f"WARN: {text}\n")


def status(entry: PlanEntry) -> str:
    """OK, or a warning."""
    if entry.failure is not None:
        return f"ERROR: {error_name(entry.failure)}"
    return "OK" if entry.state is EntryState.OK else f"WARN: {reason(entry)}"


def table(report: ResetReport) -> str:
    """The table of the plan, with the current offsets."""
    rows = [
        (
            report.group_id,
            entry.topic_partition.topic,
            str(entry.topic_partition.partition),
            str(entry.planned),
            known(entry.current),
            known(entry.log_start),
            known(entry.log_end),
            status(entry),
        )
        for entry in report.entries
    ]
    return _columns(COLUMNS, rows)


def _columns(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return table_of([names, *rows], [*[Grows(0)] * (len(names) - 1), 0])
