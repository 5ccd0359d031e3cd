"""`groupkeeper plan clone`."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

from groupkeeper.cli.framework import clusters, values
from groupkeeper.cli.framework.commands import ArgumentParser, Command, UsageMistake
from groupkeeper.cli.framework.group_arguments import named
from groupkeeper.cli.framework.reports import Page, problem_of
from groupkeeper.cli.framework.typed import words_of
from groupkeeper.cli.plans.plan_options import (
    add_policies,
    add_saving,
    add_scope,
    is_plain,
    policies_of,
    shown,
    topics_of,
)
from groupkeeper.cli.plans.schemas import CHANGES
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import GroupType
from groupkeeper.operations.plans.builder import ALL_COMMITTED
from groupkeeper.operations.plans.clones.builder import CloneRequest, Source, make_clone
from groupkeeper.operations.plans.clones.search_order import Hints
from groupkeeper.operations.plans.model import Kind
from groupkeeper.operations.plans.recorder import without_secrets
from groupkeeper.operations.selection import Names, of_new_types, select_groups
from groupkeeper.operations.share_changes import ShareAdmin
from groupkeeper.rules.words import counted

SHARE = (
    "of a share group, the start offsets are cloned: records from there on that were already acknowledged are "
    "delivered again, and their delivery counts start at one again"
)


_NAMED = 3
"""The most groups that a note names."""


def _add_groups(command: ArgumentParser) -> None:
    command.add_argument("source", nargs="?", metavar="GROUP", help="the group to copy offsets from")
    command.add_argument(
        "target",
        nargs="?",
        metavar="TO_GROUP",
        help="the group that gets the offsets; default, from another cluster: the group of the same name",
    )
    command.add_argument(
        "--all-groups",
        action="store_true",
        help="clone all consumer groups of the other cluster, each to the group of the same name, but no share or "
        "streams groups",
    )
    command.add_argument(
        "--group",
        action="append",
        help="clone these groups of the other cluster, each to the group of the same name: a name or a glob "
        "('app-*'); globs match no share or streams groups",
    )
    command.add_argument(
        "--except", action="append", dest="excepted", metavar="GROUP", help="leave out these groups: a name or a glob"
    )


def _add_arguments(command: ArgumentParser) -> None:
    _add_groups(command)
    add_scope(command)
    command.add_argument(
        "--regex",
        action="store_true",
        help="--group, --except and --topic are regular expressions that match the whole name",
    )
    command.add_argument(
        "--search-records",
        type=values.count,
        default=Hints().searched,
        help="compare at most this many records of each log of a partition, where copies have other timestamps or "
        f"were made again; default: {Hints().searched}",
    )
    command.add_argument(
        "--offset-header",
        metavar="NAME",
        help="the header in which records in this cluster hold their offset in the other cluster, as text or as eight "
        "bytes, big endian",
    )
    add_policies(command, "the other cluster's records have no counterpart")
    add_saving(command)
    where = command.add_argument_group("cluster of GROUP, if it is another one")
    where.add_argument("--from-bootstrap-server", type=values.servers, help="its brokers")
    where.add_argument("--from-context", metavar="NAME", help="the cluster saved under this name")
    where.add_argument("--from-command-config", type=values.properties, help="properties for its client")
    where.add_argument(
        "--topic-prefix",
        metavar="TEXT",
        help="the prefix of its topics in this cluster: 'east.'; default: MirrorMaker 2's prefix, else none",
    )
    clusters.add_cluster(command)


def _report(options: Namespace) -> clusters.ClusterReport:
    if options.from_command_config and options.from_bootstrap_server is None and options.from_context is None:
        raise UsageMistake("argument --from-command-config: only with --from-bootstrap-server or --from-context")
    options.other_cluster = _source_of(options)
    _check_groups(options)
    if options.other_cluster is not None:
        clusters.admin_of(options.other_cluster, options.timeout)  # bad properties are refused before a request is sent
    elif options.source == options.target and not options.topic_prefix:
        raise UsageMistake("a group cannot be cloned to itself")
    if options.offset_header is not None and options.other_cluster is None and not options.topic_prefix:
        raise UsageMistake("argument --offset-header: only from another cluster, or with --topic-prefix")
    return clusters.ClusterReport(CHANGES, _pages, is_plain=is_plain(options))


def _check_groups(options: Namespace) -> None:
    """Checks that groups are named in one way only. Raises UsageMistake."""
    if several := "--all-groups" if options.all_groups else "--group" if options.group else "":
        if options.all_groups and options.group:
            raise UsageMistake("give --all-groups or --group: not both")
        if options.source is not None:
            raise UsageMistake(f"name GROUP, or give {several}: not both")
        if options.other_cluster is None:
            raise UsageMistake(f"argument {several}: name the cluster that has them with --from-context")
        _names(options, "group")
        _names(options, "excepted")
    elif options.source is None:
        raise UsageMistake("name GROUP, the group to copy offsets from, or give --group or --all-groups")
    elif options.excepted:
        raise UsageMistake("argument --except: only with --group or --all-groups")
    elif options.target is None:
        if options.other_cluster is None and not options.topic_prefix:
            raise UsageMistake("name TO_GROUP, the group that gets the offsets, or another cluster with --from-context")
        options.target = options.source


def _names(options: Namespace, argument: str) -> Names:
    return named(getattr(options, argument), regex=options.regex, argument=f"--{argument.removesuffix('ed')}")


async def _selected(admin: Admin, options: Namespace) -> tuple[list[str], Page]:
    """The selected groups of the other cluster, and notes about the selection."""
    wanted, unwanted = _names(options, "group"), _names(options, "excepted")
    selection = await select_groups(admin, wanted)
    unwanted = unwanted.among(selection.group_ids)
    groups = [group_id for group_id in selection.group_ids if not (unwanted and unwanted.matches(group_id))]
    problems = [problem_of(failure, broker=node.id) for node, failure in selection.failed.items()]
    notes = [f"no group matches {pattern!r}" for pattern in selection.unmatched]
    if not groups and not notes:
        notes.append("no groups")
    notes += await _left_out(admin, wanted, unwanted)
    return groups, Page(problems=problems, notes=notes)


async def _left_out(admin: Admin, wanted: Names, unwanted: Names) -> list[str]:
    """Notes about share and streams groups that the patterns match: these have to be named one by one."""
    notes = []
    for kind in (GroupType.SHARE, GroupType.STREAMS):
        found = sorted(
            group_id
            for group_id in await of_new_types(admin, [kind])
            if (not wanted or (wanted.matches(group_id) and group_id not in wanted.exact))
            and not (unwanted and unwanted.matches(group_id))
        )
        if found:
            groups = counted(len(found), f"{kind.lower()} group")
            more = " ..." if len(found) > _NAMED else ""
            notes.append(f"{groups} left out: plan for each of them by its name ({', '.join(found[:_NAMED])}{more})")
    return notes


def _source_of(options: Namespace) -> clusters.Cluster | None:
    """The cluster of the source group; None: the same cluster. Raises UsageMistake."""
    if options.from_bootstrap_server is None and options.from_context is None:
        return None
    cluster = clusters.cluster_of(
        Namespace(
            bootstrap_server=options.from_bootstrap_server,
            context=options.from_context,
            command_config=options.from_command_config,
        )
    )
    return cluster._replace(source=cluster.source.replace("--", "--from-", 1))


async def _pages(session: clusters.ClusterSession) -> AsyncIterator[Page]:
    options = session.options
    where: clusters.Cluster | None = options.other_cluster
    async with AsyncExitStack() as stack:
        other = None
        if where is not None:
            session.progress.say(f"connecting to {where.bootstrap_server}")
            other = clusters.admin_of(where, options.timeout)
            await stack.enter_async_context(other)
        groups = {options.source: options.target}
        if options.source is None and other is not None:
            session.progress.say("listing groups")
            meant, said = await _selected(other, options)
            groups = dict(zip(meant, meant, strict=True))
            yield said
        session.progress.say(f"planning {counted(len(groups), 'group')}")
        is_share = options.source is not None and options.source in await of_new_types(
            other or session.admin, [GroupType.SHARE]
        )
        target = ShareAdmin(session.admin) if is_share else session.admin
        if is_share:
            other = None if other is None else ShareAdmin(other)
            yield Page(notes=[SHARE])
        wanted = CloneRequest(
            groups,
            topics_of(options) if options.topic else ALL_COMMITTED,
            policies_of(options),
            time.time_ns() // 10**6,
            without_secrets(words_of(options)),
            Hints(options.search_records, options.offset_header),
            are_named=options.source is not None,
            kind=Kind.SHARE_CLONE if is_share else Kind.CLONE,
        )
        source = Source(other, options.topic_prefix)
        made = await make_clone(target, source, wanted, say=session.progress.say)
    for page in await shown(session, made):
        yield page


CLONE = Command(
    _add_arguments,
    lambda options: clusters.run_report(options, _report),
    "Plan to give a group the offsets of another one. Nothing is changed. Offsets from another cluster are translated "
    "by the content of the records, and the plan says for each partition how certain the new offset is.",
    """\
  groupkeeper plan clone billing billing-test --save plan.json
  groupkeeper plan clone billing --from-context east --topic-prefix east. --save plan.json
  groupkeeper plan clone --all-groups --from-context east --context west --save west.json
  groupkeeper plan clone --group 'app-*' --except '*-test' --from-context east --save apps.json""",
)
