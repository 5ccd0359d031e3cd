"""Plans that give a group the offsets of another one, in the same cluster or translated from another cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Failure, OffsetAndMetadata, Position, TopicPartition
from groupkeeper.operations.errors import NoSuchTime, OutOfRange, PartitionsDiffer, SeveralCopies, TimeUnknown
from groupkeeper.operations.plans.builder import ALL_COMMITTED, Made, Otherwise, PlanTopics, Policies, with_times
from groupkeeper.operations.plans.clones.mirror_maker import RemoteNames, mirror_of, names_of
from groupkeeper.operations.plans.clones.mirror_syncs import Pair
from groupkeeper.operations.plans.clones.record_times import Sides
from groupkeeper.operations.plans.clones.search_order import FoundOffsets, Hints, find_offsets
from groupkeeper.operations.plans.clones.states import Shares, States, delivered_again, find_shares, find_states
from groupkeeper.operations.plans.clones.translator import Certainty, Ends, Translated
from groupkeeper.operations.plans.cluster_state import FoundGroups, Logs, find_groups, find_logs, will_be_made
from groupkeeper.operations.plans.deletions import chosen, lacking, nothing
from groupkeeper.operations.plans.model import Change, GroupPlan, Kind, Plan, PlanTrouble
from groupkeeper.operations.plans.recorder import cluster_id_of
from groupkeeper.operations.plans.reset import INACTIVE
from groupkeeper.operations.times import utc_text
from groupkeeper.operations.topics import HIDDEN, hides_topics
from groupkeeper.protocol.errors import GroupIdNotFound
from groupkeeper.rules.words import several

_NAMED = 3
"""The most groups that a note names."""


class Source(NamedTuple):
    """The cluster to copy from; `admin` None: the target cluster.

    `topic_prefix`: the prefix that replication adds to topic names in the target cluster; None: the names are the
    same, or those that MirrorMaker 2 gives its copies.
    """

    admin: Admin | None = None
    topic_prefix: str | None = None


class CloneRequest(NamedTuple):
    """A requested clone."""

    groups: Mapping[str, str]
    """The target's group by the source's group whose offsets it gets."""
    topics: PlanTopics
    policies: Policies = Policies()
    made_ms: int = 0
    command: tuple[str, ...] = ()
    hints: Hints = Hints()
    are_named: bool = True
    """Whether each group was named, so that one without offsets of the topics is a trouble."""
    kind: Kind = Kind.CLONE


async def make_clone(
    admin: Admin, source: Source, wanted: CloneRequest, *, say: Callable[[str], None] = lambda text: None
) -> Made:
    """The plan that gives groups of `admin`'s cluster the committed offsets of groups in the source. Changes nothing.

    For the same topics of the same cluster, offsets are copied as they are, and may be outside of the log. Otherwise
    they are translated by the records' content, and by their times if that is not enough; `certainty`, `why`,
    `skips` and `replays` tell how exact the result is. Troubles are groups that cannot be described, partitions
    that the target lacks or that cannot be translated, and topics with another number of partitions there, unless their
    partitions are named. Raises the failure of a whole cluster. `say` is called with the current step.
    """
    source_admin = source.admin or admin
    cluster_id = await cluster_id_of(admin)
    is_here = source.admin is None or (cluster_id is not None and cluster_id == await cluster_id_of(source.admin))
    groups = await find_groups(source_admin, wanted.groups)
    targets = await find_groups(admin, list(wanted.groups.values()))
    maker = _CloneMaker(wanted, groups, targets)
    maker.refuse_groups(is_here=is_here)
    if wanted.kind is Kind.SHARE_CLONE:
        maker.learn(await find_shares(source_admin, wanted.groups))
    here_named = await _topic_names(source_admin)
    states = await find_states(source_admin, admin, wanted.groups, here_named)
    maker.look_at(states, may_refuse=not is_here and wanted.topics == ALL_COMMITTED)
    commits = maker.commits
    topics = {tp.topic for one in commits.values() for tp in one}
    mirrored = RemoteNames()
    if not is_here:
        there_named = await _topic_names(admin)
        mirrored = names_of(here_named, there_named)
        maker.name(topics, source.topic_prefix, mirrored, there_named)
    else:
        maker.name(topics, source.topic_prefix or "", mirrored, frozenset())
    named = {tp: maker.named(tp) for one in commits.values() for tp in one if tp.topic not in maker.unclear}
    logs = await find_logs(admin, named.values())
    usable = {tp: to for tp, to in named.items() if to not in logs.failed}
    maker.notes += _notes(groups, commits, source, has_translation=not is_here)
    maker.notes += [HIDDEN] if commits and await hides_topics(source_admin) else []
    maker.ends, found_offsets = logs.log_ends, None
    if not is_here or source.topic_prefix:
        there = {to: Ends(logs.log_starts[to], logs.log_ends[to]) for to in usable.values()}
        logs_there = await find_logs(source_admin, usable)  # ends of the target's were first
        maker.failed = {**_of_other_counts(usable, logs_there, logs, wanted.topics), **logs_there.failed}
        usable = {tp: to for tp, to in usable.items() if tp not in maker.failed}
        here = {tp: Ends(logs_there.log_starts[tp], logs_there.log_ends[tp]) for tp in usable}
        sides = Sides(source_admin, admin, usable, here, there)
        maker.ends, found_offsets = logs_there.log_ends, await _find_offsets(maker, sides, mirrored, commits, say)
    plans = [maker.plan(group_id, logs, found_offsets) for group_id in commits]
    plans = [plan for plan in plans if plan.changes]
    facts = logs.facts_of(tp.topic for plan in plans for tp in plan.changes)
    plan = Plan(cluster_id, tuple(plans), wanted.kind, wanted.made_ms, wanted.command, facts)
    timed, more = await with_times(admin, plan)
    made = [plan.group_id for plan in plans]
    all_notes = (*maker.notes, *_absent(targets, made), *targets.notes(made), *more)
    return Made(timed, tuple(maker.troubles), all_notes, groups.absent if is_here else ())


async def _find_offsets(
    maker: _CloneMaker,
    sides: Sides,
    mirrored: RemoteNames,
    commits: Mapping[str, Iterable[TopicPartition]],
    say: Callable[[str], None],
) -> FoundOffsets:
    """Finds the found_offsets in the target, with the help of MirrorMaker 2's own records."""
    committed = maker.groups.committed
    positions = {
        Position(*tp, committed[key][tp].offset) for key, one in commits.items() for tp in one if tp in sides.named
    }
    mirror, notes = await mirror_of(sides.source, sides.target, mirrored, sides.named)
    maker.checkpoints = mirror.checkpoints
    maker.notes += notes
    told: dict[TopicPartition, list[Pair]] = {}
    for (_, tp), pair in mirror.checkpoints.items():
        told.setdefault(tp, []).append(pair)
    return await find_offsets(sides, positions, maker.wanted.hints, say, syncs=mirror.syncs, told=told)


class _CloneMaker:
    """Makes the plans of groups from known facts, and keeps troubles and notes."""

    def __init__(self, wanted: CloneRequest, groups: FoundGroups, targets: FoundGroups) -> None:
        self._names: dict[str, str] = {}
        self._refused: set[str] = set()
        self.wanted = wanted
        self.groups = groups
        self._targets = targets
        self.troubles: list[PlanTrouble] = []
        self.notes: list[str] = []
        self.failed: dict[TopicPartition, Failure] = {}
        """Why partitions of the source cannot be translated for any group."""
        self.unclear: dict[str, Failure] = {}
        """Topics of the source that may be several of the target."""
        self.checkpoints: Mapping[tuple[str, TopicPartition], Pair] = {}
        self.shares = Shares()
        self.ends: Mapping[TopicPartition, int] = {}
        """The ends of the source's logs."""

    def name(self, topics: Iterable[str], prefix: str | None, mirrored: RemoteNames, target: frozenset[str]) -> None:
        """Sets the names of the source's topics in the target. `prefix` None: the same names, or those of MirrorMaker
        2's copies if these are the only ones.
        """
        for topic in sorted(topics):
            copies = mirrored.copies.get(topic, ())
            some = [topic, *copies] if topic in target or not copies else list(copies)
            if prefix is None and len(some) > 1:
                self.unclear[topic] = SeveralCopies(topic, some)
            self._names[topic] = some[0] if prefix is None else prefix + topic
        renamed = [f"{topic} is {name}" for topic, name in self._names.items() if prefix is None and name != topic]
        if renamed:
            self.notes.append(f"topics are named as MirrorMaker 2 names its copies: {several(renamed, _NAMED)}")

    def named(self, tp: TopicPartition) -> TopicPartition:
        """The target's partition for a partition of the source."""
        return TopicPartition(self._names[tp.topic], tp.partition)

    def refuse_groups(self, *, is_here: bool) -> None:
        """Adds troubles for groups that cannot be described, and for those that the source doesn't have."""
        failed = dict(self.groups.failed)
        if not is_here:
            failed |= {key: GroupIdNotFound(f"Group {key} not found.") for key in self.groups.absent}
        refused = {**self._targets.failed, **failed}
        self.troubles += (PlanTrouble(group_id, None, why) for group_id, why in refused.items())

    def look_at(self, states: States, *, may_refuse: bool) -> None:
        """Adds notes about states of Kafka Streams applications; refuses those whose state the target lacks."""
        for group_id, topics in states.topics.items():
            to, missing = self.wanted.groups[group_id], states.missing.get(group_id, {})
            if missing and may_refuse:
                self._refused.add(group_id)
                self.troubles += (PlanTrouble(to, topic, why) for topic, why in missing.items())
            elif missing:
                self.notes.append(
                    f"{to} would go on without the state of {group_id}, as it has no {several(list(missing), _NAMED)}"
                )
            else:
                self.notes.append(
                    f"{group_id} is an application of Kafka Streams: {to} restores its state from copies of "
                    f"{several(topics, _NAMED)}, which must be as up to date as its offsets"
                )

    @property
    def commits(self) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """The committed offsets of the source's groups in the selected partitions."""
        groups, targets = self.groups, self._targets
        absent = frozenset(groups.absent)
        return {
            group_id: {tp: groups.committed[group_id][tp] for tp in sorted(self._chosen(group_id))}
            for group_id, to in self.wanted.groups.items()
            if group_id not in groups.failed
            and group_id not in absent
            and to not in targets.failed
            and group_id not in self._refused
        }

    def _chosen(self, group_id: str) -> Iterable[TopicPartition]:
        return chosen(self.wanted.topics, self.groups.committed[group_id])

    def plan(self, group_id: str, logs: Logs, found_offsets: FoundOffsets | None) -> GroupPlan:
        """The plan of one group. `found_offsets` None: offsets are copied as they are."""
        committed, target = self.groups.committed[group_id], self.wanted.groups[group_id]
        wanted = sorted(self._chosen(group_id))
        named = {tp: self.named(tp) for tp in wanted if tp.topic not in self.unclear}
        unclear = dict.fromkeys(tp.topic for tp in wanted if tp.topic in self.unclear)
        self.troubles += (PlanTrouble(target, topic, self.unclear[topic]) for topic in unclear)
        self.troubles += _unusable(target, named.values(), logs)
        usable = {tp: to for tp, to in named.items() if to not in logs.failed}
        if found_offsets is None:
            found = {tp: _as_it_is(group_id, committed[tp]) for tp in usable}
        else:
            found = self._translated(target, committed, usable, found_offsets)
            found = {tp: self._not_skipped(group_id, tp, one, logs.log_starts[usable[tp]]) for tp, one in found.items()}
        found = {tp: delivered_again(one, self._done_ahead(group_id, tp)) for tp, one in found.items()}
        if self.wanted.are_named:
            left = lacking(self.wanted.topics, committed)
            self.troubles += (PlanTrouble(group_id, tp, nothing(tp)) for tp in left)
        changes: dict[TopicPartition, Change] = {}
        for tp, one in found.items():
            to = named[tp]
            after = OffsetAndMetadata(one.offset, one.leader_epoch, committed[tp].metadata)
            log_end = max(one.offset, logs.log_ends[to]) if one.skips is not None else logs.log_ends[to]  # it grows
            before = self._targets.committed[target].get(to)
            why = one.why + self._of_mirror_maker(group_id, tp, committed[tp].offset)
            changes[to] = Change(
                before, after, logs.log_starts[to], log_end, None, None, why, one.skips, one.replays, one.certainty
            )
        changes = _in_range(target, changes, self.wanted.policies, self.troubles, self.notes)
        return GroupPlan(target, changes, (), str(self._targets.state(target)))

    def _done_ahead(self, group_id: str, tp: TopicPartition) -> int | None:
        end = self.ends.get(tp)
        start = self.groups.committed[group_id][tp].offset
        return None if end is None else self.shares.done_ahead(group_id, tp, start, end)

    def learn(self, shares: Shares) -> None:
        """Keeps `shares`, and adds notes about partitions in which a share group has no start offset to clone."""
        self.shares = shares
        for group_id, to in self.wanted.groups.items():
            tps = shares.without.get(group_id, [])
            meant = [str(tp) for tp in chosen(self.wanted.topics, dict.fromkeys(tps, OffsetAndMetadata(0)))]
            if meant:
                self.notes.append(
                    f"{group_id} has no start offset yet in {several(meant, _NAMED)}: {to} starts there by its "
                    "share.auto.offset.reset; by default (latest) after all existing records"
                )

    def _not_skipped(self, group_id: str, tp: TopicPartition, one: Translated, log_start: int) -> Translated:
        """The translation, or MirrorMaker 2's earlier one if this one skips records, which the source may have lost."""
        checkpoint, committed = self.checkpoints.get((group_id, tp)), self.groups.committed[group_id][tp].offset
        if not one.skips or checkpoint is None or checkpoint.upstream > committed:
            return one
        offset = checkpoint.downstream
        if not log_start <= offset < one.offset:
            return one
        why = f"{one.why}; MirrorMaker 2 translated {checkpoint.upstream} to {offset}: nothing is skipped from there"
        replays = one.offset - offset + (one.replays or 0)
        return Translated(offset, why, 0, replays, certainty=Certainty.BOUNDED, to_come=one.to_come)

    def _of_mirror_maker(self, group_id: str, tp: TopicPartition, committed: int) -> str:
        """Text about MirrorMaker 2's own translation of the same offset; "" if there is none."""
        checkpoint = self.checkpoints.get((group_id, tp))
        if checkpoint is None or checkpoint.upstream != committed:
            return ""
        return f"; MirrorMaker 2's own translation is {checkpoint.downstream}"

    def _translated(
        self,
        target: str,
        committed: Mapping[TopicPartition, OffsetAndMetadata],
        named: Mapping[TopicPartition, TopicPartition],
        found_offsets: FoundOffsets,
    ) -> dict[TopicPartition, Translated]:
        """The offsets in the target; where no record gives one, the policies decide."""
        found: dict[TopicPartition, Translated] = {}
        troubles: list[PlanTrouble] = []
        policy = self.wanted.policies.if_no_record
        for tp, to in named.items():
            position = Position(*tp, committed[tp].offset)
            one, why = found_offsets.done.get(position), found_offsets.failed.get(position, self.failed.get(tp))
            if one is not None and one.to_come is not None and policy is not Otherwise.END:
                why = NoSuchTime(f"there is no record at or after {utc_text(one.to_come)} yet")
            elif one is not None:
                found[tp] = one
            if why is not None and policy is Otherwise.SKIP and isinstance(why, NoSuchTime | TimeUnknown):
                self.notes.append(f"{target} {to} is skipped: {why}")
            elif isinstance(why, TimeUnknown) and policy is Otherwise.FAIL:
                troubles.append(PlanTrouble(target, to, NoSuchTime(str(why))))
            elif why is not None:
                troubles.append(PlanTrouble(target, to.topic if isinstance(why, PartitionsDiffer) else to, why))
        self.troubles += dict.fromkeys(troubles)  # of a topic once
        return found


def _as_it_is(group_id: str, commit: OffsetAndMetadata) -> Translated:
    why = f"exactly as {group_id} has it"
    return Translated(commit.offset, why, None, None, commit.leader_epoch, Certainty.IDENTITY)


def _in_range(
    target: str,
    wanted: Mapping[TopicPartition, Change],
    policies: Policies,
    troubles: list[PlanTrouble],
    notes: list[str],
) -> dict[TopicPartition, Change]:
    """The changes; where the log doesn't hold the offset, the policies decide."""
    changes: dict[TopicPartition, Change] = {}
    for tp, change in wanted.items():
        fitted = _fitted(change)
        if fitted == change or policies.if_out_of_range is Otherwise.CLAMP:
            changes[tp] = fitted
        elif policies.if_out_of_range is Otherwise.FAIL:
            troubles.append(PlanTrouble(target, tp, OutOfRange(fitted.why)))
        else:
            notes.append(f"{target} {tp} is skipped: {fitted.why}")
    return changes


async def _topic_names(admin: Admin) -> frozenset[str]:
    return frozenset(one.name for one in await admin.list_topics())


def _notes(groups: FoundGroups, group_ids: Iterable[str], source: Source, *, has_translation: bool) -> list[str]:
    """Notes about the source's groups and its cluster."""
    notes = []
    if source.admin is not None and not has_translation:
        how = "as they are" if not source.topic_prefix else "to other topics, by their records"
        notes.append(f"both groups are in the same cluster: offsets are copied {how}")
    active = [group_id for group_id in group_ids if groups.state(group_id) not in INACTIVE]
    if active:
        have = "has" if len(active) == 1 else "have"
        notes.append(f"{several(active, _NAMED)} {have} members: their next commits are not in the plan")
    return notes


def _absent(targets: FoundGroups, group_ids: Iterable[str]) -> list[str]:
    """The notes about groups that get offsets and don't exist."""
    planned = frozenset(group_ids)
    absent = [group_id for group_id in targets.absent if group_id in planned]
    if len(absent) <= _NAMED:
        return [will_be_made(group_id) for group_id in absent]
    return [f"there are no groups {several(absent, _NAMED)}: they are made when the plan is applied with --create"]


def _unusable(target: str, tps: Iterable[TopicPartition], logs: Logs) -> list[PlanTrouble]:
    """Troubles about topics and partitions that the target's cluster lacks; one for a whole topic."""
    troubles: dict[TopicPartition | str, Failure] = {}
    for tp in tps:
        if tp.topic in logs.topics.failed:
            troubles[tp.topic] = logs.topics.failed[tp.topic]
        elif (why := logs.why_not(tp)) is not None:
            troubles[tp] = why
    return [PlanTrouble(target, tp, why) for tp, why in troubles.items()]


def _fitted(change: Change) -> Change:
    """The change, clamped to the nearer end of the log if the offset is outside of it; `why` then has the reason."""
    fitted = change.clamped
    if fitted == change:
        return change
    assert change.after is not None
    is_below = change.log_start_offset is not None and change.after.offset < change.log_start_offset
    end = "below the log start" if is_below else "above the log end"
    return fitted._replace(why=f"{change.why}; {change.after.offset} is {end}, which is used instead")


def _of_other_counts(
    named: Mapping[TopicPartition, TopicPartition], source_logs: Logs, logs: Logs, topics: PlanTopics
) -> dict[TopicPartition, Failure]:
    """Failures of partitions whose topic has another number of partitions in the target, unless they are named."""
    failed: dict[TopicPartition, Failure] = {}
    counts: dict[str, tuple[int, int]] = {}
    reasons: dict[str, PartitionsDiffer] = {}
    for tp, to in named.items():
        if tp.topic not in counts:
            counts[tp.topic] = (len(source_logs.existing(tp.topic)), len(logs.existing(to.topic)))
        here, there = counts[tp.topic]
        if here and here != there and tp not in topics.partitions:
            failed[tp] = reasons.setdefault(tp.topic, PartitionsDiffer(tp.topic, here, there))
    return failed
