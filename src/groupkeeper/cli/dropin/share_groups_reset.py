"""--reset-offsets of kafka-share-groups: the start offsets of one group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupkeeper.cli.dropin.consumer_groups_reset import GroupReset, check_partitions, named_partitions, not_altered
from groupkeeper.cli.dropin.drop_in import ExecutionFailure, failing
from groupkeeper.cli.java import values as java
from groupkeeper.cli.java.releases import release
from groupkeeper.client.admin.types import Failure, SharePartitionOffset, TopicPartition
from groupkeeper.operations.plans.model import GroupPlan, Kind
from groupkeeper.operations.plans.recorder import commit, known_cluster_id, single
from groupkeeper.operations.plans.reset import Scenario
from groupkeeper.protocol.errors import KafkaError

UNKNOWN_START = (
    'Cannot invoke "org.apache.kafka.clients.admin.SharePartitionOffsetInfo.startOffset()" because the return value of '
    '"java.util.Map.get(Object)" is null'
)
"""The official tool's failure for a partition of the group that has no start offset yet."""


class ShareReset(GroupReset):
    """Resets the start offsets of share groups, with an Admin that has them as commits. Raises ExecutionFailure,
    UsageProblem and what operations refuse.
    """

    async def partitions(self, group_id: str) -> Sequence[TopicPartition]:
        """The partitions that --topic names, otherwise the group's, with --from-file too."""
        if self.options.has("topic"):
            partitions = await named_partitions(self.admin, self.options)
        else:
            partitions = list(await self._starts(group_id))
        await check_partitions(self.admin, partitions)
        return partitions

    async def _starts(self, group_id: str) -> Mapping[TopicPartition, SharePartitionOffset | None]:
        with failing(java.message):
            listed = await self.admin.list_share_group_offsets({group_id: None})
            return listed.result(group_id).done

    async def scenario(self, group_id: str, partitions: Sequence[TopicPartition]) -> Scenario:
        """The scenario that the options select."""
        if self.options.has("to-current"):
            starts = await self._starts(group_id)
            if any(starts.get(partition, partition) is None for partition in partitions):
                raise ExecutionFailure(UNKNOWN_START)
        return await super().scenario(group_id, partitions)

    async def _commit(self, plan: GroupPlan) -> None:
        """Sets start offsets. A refusal of the whole group is shown for each partition, so only if there is one."""
        if not plan.changes:
            return
        cluster_id = None
        if self.recorder is not None:
            cluster_id = await known_cluster_id(self.admin)
        outcome = await commit(self.admin, single(plan, cluster_id, Kind.SHARE_RESET), self.recorder)
        refusal = outcome.failed.get(plan.group_id)
        failed: dict[TopicPartition, Failure]
        if refusal is None:
            failed = outcome.done[plan.group_id].failed
        elif isinstance(refusal, KafkaError):
            failed = dict.fromkeys(plan.changes, refusal)
        else:
            raise ExecutionFailure(java.message(refusal))
        if failed:
            in_order = [tp for tp in java.partition_order(plan.changes) if tp in failed]
            reason = f"{java.message(failed[in_order[0]])} " if release().bare_questions else ""
            raise ExecutionFailure(f"{reason}{not_altered(in_order)}")
