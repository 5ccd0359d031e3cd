"""--reset-offsets of kafka-consumer-groups, one group at a time, with the official tool's warnings and refusals."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from groupkeeper.cli.dropin.drop_in import ExecutionFailure, failing, log_warning, say
from groupkeeper.cli.dropin.options import UsageProblem, in_hash_order
from groupkeeper.cli.dropin.reset_steps import (
    check_partitions,
    datetime_ms,
    named_partitions,
    not_altered,
    nothing_later,
    refuse_duplicates,
    refuse_unlistable,
)
from groupkeeper.cli.java import values as java
from groupkeeper.client.admin.types import Batch, ConsumerGroupDescription, OffsetAndMetadata, TopicPartition
from groupkeeper.operations import plan_csv
from groupkeeper.operations.errors import GroupIsActive, NoPlan, NothingCommitted
from groupkeeper.operations.reset import (
    Note,
    NoteKind,
    Plan,
    Scenario,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToPlan,
    ToTime,
    apply,
    committed_offsets,
    refuse_active,
    resolve,
)
from groupkeeper.operations.times import BadDuration, parse_duration

if TYPE_CHECKING:
    from groupkeeper.cli.dropin.consumer_groups_options import Converted
    from groupkeeper.cli.dropin.options import Options
    from groupkeeper.client.admin import Admin
    from groupkeeper.operations.plans.recording import Recorder

SCENARIOS = (
    "to-offset",
    "shift-by",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "from-file",
)
LOGGER = "org.apache.kafka.tools.OffsetsUtils"

NewOffsets = Mapping[TopicPartition, OffsetAndMetadata]


class GroupReset:
    """Resets groups according to the options. Raises ExecutionFailure, UsageProblem and what operations refuse."""

    def __init__(self, admin: Admin, options: Options, values: Converted, recorder: Recorder | None) -> None:
        self.admin = admin
        self.options = options
        self.values = values
        self.timeout_ms = values.timeout_ms
        self.recorder = recorder

    async def run(self, group_id: str, described: Batch[str, ConsumerGroupDescription]) -> NewOffsets:
        """The new offsets of one group, committed with --execute; none for a group that is active."""
        try:
            with failing(java.wrapped):
                refuse_active(group_id, described)
        except GroupIsActive as problem:
            say(f"\nError: {problem}\n")
            return {}
        return await self.reset(group_id)

    async def reset(self, group_id: str) -> NewOffsets:
        """The new offsets of a group without members, committed with --execute."""
        partitions = await self.partitions(group_id)
        try:
            plan = await self._plan(group_id, partitions)
        except NoPlan as problem:
            say(f"\nError: {problem}\n")
            return {}
        for note in plan.notes:
            _tell(note)
        # The official tool drops metadata and leader epochs.
        bare = {tp: change._replace(after=_bare(change.after)) for tp, change in sorted(plan.changes.items())}
        plan = plan._replace(changes=bare)
        if self.options.has("execute") and not self.options.has("dry-run"):
            await self._commit(plan)
        return plan.offsets

    def csv(self, plans: Mapping[str, NewOffsets]) -> str:
        """The new offsets as --export prints them."""
        offsets = [(group_id, {tp: offset.offset for tp, offset in plan.items()}) for group_id, plan in plans.items()]
        return plan_csv.write(offsets, with_group=len(self.options.texts("group")) != 1) + "\n"

    async def partitions(self, group_id: str) -> Sequence[TopicPartition]:
        """Those to reset, which exist and have leaders."""
        partitions: Sequence[TopicPartition] = ()
        if self.options.has("all-topics"):
            partitions = list(await self.committed(group_id))
        elif self.options.has("topic"):
            partitions = await named_partitions(self.admin, self.options, self.timeout_ms)
        else:
            self.refuse_no_scope()
        await check_partitions(self.admin, partitions, self.timeout_ms)
        return partitions

    def refuse_no_scope(self) -> None:
        """Without topics there must be a file."""
        if not self.options.has("from-file"):
            raise UsageProblem("One of the reset scopes should be defined: --all-topics, --topic.")

    async def committed(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has committed, in partitions that may be reset."""
        with failing(java.wrapped):
            return await committed_offsets(self.admin, group_id, timeout_ms=self.timeout_ms)

    async def _plan(self, group_id: str, partitions: Sequence[TopicPartition]) -> Plan:
        scenario = await self.scenario(group_id, partitions)
        if isinstance(scenario, ToPlan):
            # A plan's partitions are not checked before; the lookup of their log ends says what is wrong with them.
            await refuse_unlistable(self.admin, scenario.offsets, self.timeout_ms, java.wrapped)
            partitions = list(scenario.offsets)
        else:
            refuse_duplicates(partitions)
        with failing(java.wrapped):
            return await resolve(self.admin, group_id, partitions, scenario, timeout_ms=self.timeout_ms)

    async def scenario(self, group_id: str, partitions: Sequence[TopicPartition]) -> Scenario:
        """The scenario that the options select."""
        options = self.options
        if options.has("to-offset"):
            return ToOffset(self.values.to_offsets[0])
        if options.has("to-earliest"):
            return ToEarliest()
        if options.has("to-latest"):
            return ToLatest()
        if options.has("shift-by"):
            return self._shift(partitions, await self.committed(group_id))
        if options.has("to-datetime") or options.has("by-duration"):
            return ToTime(self._time_ms())
        if options.has("from-file"):
            return self._from_file(group_id)
        if options.has("to-current"):
            return ToCurrent(clamp=False)
        names = ", ".join(f"[{name}]" for name in in_hash_order(SCENARIOS))
        raise UsageProblem(f"Option '[reset-offsets]' requires one of the following scenarios: [{names}]")

    def _shift(self, partitions: Sequence[TopicPartition], committed: NewOffsets) -> Scenario:
        """The shift by the official tool's arithmetic, which wraps around."""
        shifted = {}
        for partition in partitions:
            if partition not in committed:
                raise NothingCommitted(partition)
            if partition in shifted:
                raise ExecutionFailure(f"Duplicate key {partition}")
            shifted[partition] = java.to_long(committed[partition].offset + (self.values.shift_by or 0))
        return ToPlan(shifted)

    def _time_ms(self) -> int:
        if self.options.has("to-datetime"):
            return datetime_ms(self.options)
        try:
            return parse_duration(self.values.by_duration or "").before_ms(time.time_ns())
        except BadDuration as problem:
            raise ExecutionFailure(str(problem)) from None

    def _from_file(self, group_id: str) -> Scenario:
        path = self.options.texts("from-file")[0]
        groups = self.options.texts("group")
        try:
            text = Path(path).read_bytes().decode("utf-8", "replace") if path else ""
        except OSError:
            text = None
        if text is None or not path:
            raise ExecutionFailure(f"java.io.IOException: Unable to read file {path}")
        try:
            plans = plan_csv.read(text, groups[0] if len(groups) == 1 else None, fill_gaps=True)
        except plan_csv.NegativeOffset:
            raise UsageProblem("Invalid negative offset") from None
        except plan_csv.BadPlan as problem:
            raise ExecutionFailure(f"com.fasterxml.jackson.core.JsonProcessingException: {problem}") from None
        if group_id not in plans:
            raise NoPlan(group_id)
        return ToPlan(plans[group_id])

    async def _commit(self, plan: Plan) -> None:
        with failing(java.message):
            batch = await apply(self.admin, plan, self.recorder, timeout_ms=self.timeout_ms)
        if batch.failed:
            raise not_altered(batch.failed)


def _bare(commit: OffsetAndMetadata | None) -> OffsetAndMetadata | None:
    return None if commit is None else OffsetAndMetadata(commit.offset)


def _tell(note: Note) -> None:
    """Say why an offset isn't the one that was asked for, where and as the official tool does."""
    if note.kind is NoteKind.NOTHING_LATER:
        say(nothing_later(note.partition))
        return
    beyond = "higher than latest" if note.kind is NoteKind.ABOVE_LATEST else "lower than earliest"
    log_warning(
        f"New offset ({note.asked}) is {beyond} offset for topic partition {note.partition}. "
        f"Value will be set to {note.used}",
        LOGGER,
    )
