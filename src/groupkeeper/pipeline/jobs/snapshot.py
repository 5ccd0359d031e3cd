"""The tables as they are now: new records of the offsets topics are appended to the history, and all other tables are
built from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from groupkeeper.coroutines import result_of
from groupkeeper.operations.plans.journal import ChangeJournal
from groupkeeper.pipeline.checkpoints.queries import Checkpoint
from groupkeeper.pipeline.errors import SourceError, cause_of
from groupkeeper.pipeline.governance.privacy import with_privacy
from groupkeeper.pipeline.jobs.history import append, read_aside
from groupkeeper.pipeline.jobs.log_offsets import Clusters
from groupkeeper.pipeline.jobs.queries import Queries, find_queries
from groupkeeper.pipeline.jobs.reading import Reading, readings, same_clusters, why_unread
from groupkeeper.pipeline.jobs.refresh import make_tables
from groupkeeper.pipeline.jobs.steps import RefreshContext
from groupkeeper.pipeline.jobs.watch import Problem, Run, Summary, Watch
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.kafka.planning import ReadPlan, named, plan
from groupkeeper.pipeline.kafka.retention import ask_retentions
from groupkeeper.pipeline.owners import OwnerRule
from groupkeeper.pipeline.storage.output import LakeChoice, Output, open_output
from groupkeeper.pipeline.tables import COMMITS, HISTORY


def snapshot(
    spark: SparkSession,
    options: Mapping[str, str],
    directory: str,
    watch: Watch | None = None,
    *,
    ask: Callable[[], ReadPlan] | None = None,
    from_start: bool = False,
    lake: LakeChoice | None = None,
    keep_days: int | None = None,
    checkpoints: Sequence[Checkpoint] = (),
    owners: Sequence[OwnerRule] = (),
    journals: Sequence[str | ChangeJournal] = (),
) -> Summary:
    """Bring all tables in `directory` up to date. `options` are the source's options; `ask` gives the plan of the
    clusters, once the directory is open; None: the clusters are queried. A failure of one cluster
    does not affect the others. `from_start`: build all tables except the history from the whole history, not only from
    new rows. `lake`: the lake to write to from now on; None: the lake used before, if any. `keep_days`: how many days
    growing tables keep their rows from now on; 0: for ever, None: as before. `checkpoints`: checkpoints of queries
    shown among the groups; `owners`: owners of groups and topics; `journals`: those of groupkeeper, their files, and
    folders with such files.

    Raises SourceError when the directory can't be written.
    """
    run = Run(watch)
    with open_output(spark, directory, lake=lake, keep_days=keep_days) as output:
        if output.ledger.loss is not None:
            run.note(output.ledger.loss)
        given = update_history(output, options, run, ask)
        queries = Queries()
        if checkpoints:
            queries, problems = find_queries(spark, checkpoints, given.clusters.options, given.clusters.instants)
            for problem in problems:
                run.fail(problem)
        given = given._replace(queries=queries, owners=owners, journals=journals)
        make_tables(output, given, run, from_start=from_start)
    return run.summary


def update_history(
    output: Output, options: Mapping[str, str], run: Run, ask: Callable[[], ReadPlan] | None = None
) -> RefreshContext:
    """Append the records that the tables don't have yet; `ask` as for `snapshot`. The result has the state of the
    clusters.
    """
    parsed = parse_options({**options, "rows": "decoded"})
    parsed = with_privacy(parsed, output.ledger)
    found = result_of(plan(parsed)) if ask is None else ask()
    parsed = named(parsed, found.ranges)
    left, strange = readings(found, output.ledger)
    unread = {name: why_unread(name, error, output.ledger) for name, error in found.failed.items()}
    failed = {name: str(error) for name, error in [*unread.items(), *strange.items()]}
    for name, text in failed.items():
        run.fail(Problem(name, text))
    instants = {name: each for name, each in found.instants.items() if name not in strange}
    for name, instant in instants.items():
        if instant.unread is not None:
            run.fail(Problem(name, instant.unread))
    replies = ask_retentions(parsed, found.ranges)
    same = same_clusters({**output.ledger.identities, **{name: each.identity for name, each in instants.items()}})
    for note in [*replies.notes, *same, *(note for each in left for note in each.notes)]:
        run.note(note)
    run.watch.reading(sum(each.size for each in left))
    given = RefreshContext(Clusters(parsed, instants, failed), replies.by_cluster)
    _read(output, given, left, run)
    for table in HISTORY:
        run.watch.table(table.name, run.summary.new_rows.setdefault(table.name, 0), is_appended=True)
    return given


def _read(output: Output, given: RefreshContext, left: list[Reading], run: Run) -> None:
    """Reads all clusters at once; if that fails, one by one."""
    if not left:
        return
    try:
        _append(output, given, left, run)
    except (PySparkException, Py4JError, SourceError) as error:
        if (cause := cause_of(error)) is None:
            raise
        if len(left) == 1:
            run.fail(Problem(left[0].name, cause))
        else:
            for each in left:
                _read(output, given, [each], run)


def _append(output: Output, given: RefreshContext, left: list[Reading], run: Run) -> None:
    if not any(each.size for each in left) and output.ledger.files(COMMITS.name):
        return
    ranges = [one for each in left for one in each.ranges]
    aside = read_aside(output, ranges, given.clusters.options)
    read_to = {each.name: each.read_to for each in left}
    identities = {each.name: given.clusters.instants[each.name].identity for each in left}
    appended = append(output, aside, given.retentions, read_to, identities)
    run.append(appended.rows)
    if appended.note:
        run.note(appended.note)
