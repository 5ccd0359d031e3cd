"""Transactions and their producers (KIP-664): ListTransactions, DescribeTransactions, DescribeProducers, and ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from groupkeeper.client.admin.arguments import of_kind, one_of, several
from groupkeeper.client.admin.coordinators import TRANSACTIONS, coordinator_at, routed
from groupkeeper.client.admin.log_offsets import of_leaders
from groupkeeper.client.admin.resources.controller import ask_every_broker
from groupkeeper.client.admin.types import Batch, Failure, TopicPartition
from groupkeeper.client.batch import failure_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.errors import IllegalArgument, UnsupportedVersion
from groupkeeper.client.peer import Peer
from groupkeeper.client.router import COORDINATOR_RETRIES, Retries, one_by_one
from groupkeeper.client.topology import by_topic
from groupkeeper.protocol import messages as m

if TYPE_CHECKING:
    from groupkeeper.client.admin.resources.types import (
        FencedProducer,
        ProducerState,
        TransactionDescription,
        TransactionListings,
        TransactionState,
    )

_IDS_PER_REQUEST = 500
_PARTITIONS_PER_REQUEST = 500
# CONCURRENT_TRANSACTIONS: the previous one is being completed
_ENDING = Retries(same_broker=COORDINATOR_RETRIES.same_broker | {51})


class TransactionCalls:
    """Calls of Admin on transactions and their producers."""

    _cluster: Cluster

    async def list_transactions(
        self,
        *,
        states: Iterable[TransactionState | str] = (),
        producer_ids: Iterable[int] = (),
        min_duration_ms: int | None = None,
        transactional_id_pattern: str | None = None,
        timeout_ms: int | None = None,
    ) -> TransactionListings:
        """The transactional ids of all brokers (KIP-664). Empty `states` or `producer_ids`: any.
        `min_duration_ms`: only transactions open for longer (Kafka 3.8). `transactional_id_pattern`: a regular
        expression that the whole id matches (Kafka 4.1). Ids that the caller may not see (DESCRIBE) are left out. A
        broker that fails is in `failed` of the result: UnsupportedVersion when it is older than 3.0, or too old for a
        filter.
        """
        from groupkeeper.client.admin.resources.types import TransactionListing, TransactionListings, TransactionState

        names = [str(state) for state in several(states, "states")]
        ids = several(producer_ids, "producer_ids")

        def build(version: int) -> m.ListTransactionsRequest:
            if min_duration_ms is not None and version < 1:
                raise UnsupportedVersion("listTransactions by duration needs Kafka 3.8 or later")
            if transactional_id_pattern and version < 2:
                raise UnsupportedVersion("listTransactions by a pattern of transactional ids needs Kafka 4.1 or later")
            duration = -1 if min_duration_ms is None else min_duration_ms
            return m.ListTransactionsRequest(names, ids, duration, transactional_id_pattern)

        deadline = self._cluster.deadline("listTransactions", timeout_ms)
        responses = await ask_every_broker(
            self._cluster, m.ListTransactionsResponse, build, deadline, lambda response: response.error_code
        )
        listings = TransactionListings({}, {})
        for node, response in responses.items():
            if isinstance(response, Failure):
                listings.failed[node] = response
            elif response.unknown_state_filters:
                unknown = ", ".join(response.unknown_state_filters)
                listings.failed[node] = IllegalArgument(f"the broker has no such state of transactions: {unknown}")
            else:
                for one in response.transaction_states:
                    state = TransactionState.parse(one.transaction_state)
                    listings.transactions[one.transactional_id] = TransactionListing(
                        one.transactional_id, one.producer_id, state
                    )
        return listings

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Batch[str, TransactionDescription]:
        """The state of transactional ids, from their coordinators, with the partitions of open transactions.

        Fails per id: TransactionalIdNotFound, TransactionalIdAuthorizationFailed, UnsupportedVersion before 3.0.
        """
        from groupkeeper.client.admin.resources.types import TransactionDescription, TransactionState

        wanted = several(transactional_ids, "transactional_ids")

        async def ask(peer: Peer, keys: list[str]) -> dict[str, TransactionDescription | Failure]:
            response = await peer.ask(m.DescribeTransactionsResponse, m.DescribeTransactionsRequest(keys), deadline)
            return {
                one.transactional_id: failure_of(one.error_code)
                or TransactionDescription(
                    coordinator_at(peer),
                    TransactionState.parse(one.transaction_state),
                    one.producer_id,
                    one.producer_epoch,
                    one.transaction_timeout_ms,
                    None if one.transaction_start_time_ms < 0 else one.transaction_start_time_ms,
                    tuple(TopicPartition(topic.topic, index) for topic in one.topics for index in topic.partitions),
                )
                for one in response.transaction_states
            }

        deadline = self._cluster.deadline("describeTransactions", timeout_ms)
        call = routed(self._cluster, deadline, ask, chunk=_IDS_PER_REQUEST, kind=TRANSACTIONS)
        return await call.run(wanted)

    async def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Batch[str, FencedProducer]:
        """Abort the open transaction of each id, and fence its current producer.

        Fails per id: TransactionalIdAuthorizationFailed (this needs WRITE on it), ClusterAuthorizationFailed.
        """
        from groupkeeper.client.admin.resources.types import FencedProducer

        wanted = several(transactional_ids, "transactional_ids")
        deadline = self._cluster.deadline("fenceProducers", timeout_ms)

        async def ask(peer: Peer, keys: list[str]) -> dict[str, FencedProducer | Failure]:
            async def fence(transactional_id: str) -> FencedProducer | Failure:
                response = await peer.ask(
                    m.InitProducerIdResponse, m.InitProducerIdRequest(transactional_id, deadline.timeout_ms), deadline
                )
                fenced = FencedProducer(response.producer_id, response.producer_epoch)
                return failure_of(response.error_code) or fenced

            return dict(await one_by_one(keys, fence))

        call = routed(self._cluster, deadline, ask, chunk=_IDS_PER_REQUEST, kind=TRANSACTIONS, retries=_ENDING)
        return await call.run(wanted)

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> Batch[TopicPartition, tuple[ProducerState, ...]]:
        """The producer state of partitions, with the start offsets of open transactions.

        Fails per partition: UnknownTopicOrPartition, TopicAuthorizationFailed (this needs READ on the topic),
        UnsupportedVersion before 2.8.
        """
        from groupkeeper.client.admin.resources.types import ProducerState
        from groupkeeper.protocol.messages.describe_producers_request import TopicRequest

        wanted = of_kind(partitions, TopicPartition, "partitions")

        async def ask(
            peer: Peer, keys: list[TopicPartition]
        ) -> dict[TopicPartition, tuple[ProducerState, ...] | Failure]:
            topics = by_topic(keys).items()
            request = m.DescribeProducersRequest([TopicRequest(name, indexes) for name, indexes in topics])
            response = await peer.ask(m.DescribeProducersResponse, request, deadline)
            return {
                TopicPartition(topic.name, each.partition_index): failure_of(each.error_code, each.error_message)
                or tuple(
                    ProducerState(
                        one.producer_id,
                        one.producer_epoch,
                        one.last_sequence,
                        one.last_timestamp,
                        one.coordinator_epoch,
                        None if one.current_txn_start_offset < 0 else one.current_txn_start_offset,
                    )
                    for one in each.active_producers
                )
                for topic in response.topics
                for each in topic.partitions
            }

        deadline = self._cluster.deadline("describeProducers", timeout_ms)
        return await of_leaders(self._cluster, deadline, ask, chunk=_PARTITIONS_PER_REQUEST).run(wanted)

    async def abort_transaction(
        self, partition: TopicPartition, producer: ProducerState, *, timeout_ms: int | None = None
    ) -> None:
        """Abort a transaction in one partition without its coordinator: for a hanging transaction, which no coordinator
        ends.

        `producer` comes from `describe_producers`. For a transaction that its coordinator has, see
        `fence_producers`. Raises InvalidProducerEpoch, TransactionCoordinatorFenced, InvalidTxnState,
        UnknownTopicOrPartition, ClusterAuthorizationFailed (this needs CLUSTER_ACTION), UnsupportedVersion.
        """
        from groupkeeper.client.admin.resources.types import ProducerState

        one_of(partition, TopicPartition, "partition"), one_of(producer, ProducerState, "producer")
        marker = m.WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            transaction_result=False,
            topics=[m.WritableTxnMarkerTopic(partition.topic, [partition.partition])],
            # During a producer's first transaction the partition has no coordinator epoch (−1): 0 is no later than any.
            coordinator_epoch=max(0, producer.coordinator_epoch),
        )

        async def ask(peer: Peer, keys: list[TopicPartition]) -> dict[TopicPartition, Failure | None]:
            response = await peer.ask(m.WriteTxnMarkersResponse, m.WriteTxnMarkersRequest([marker]), deadline)
            return {
                TopicPartition(topic.name, each.partition_index): failure_of(each.error_code)
                for one in response.markers
                for topic in one.topics
                for each in topic.partitions
            }

        deadline = self._cluster.deadline("abortTransaction", timeout_ms)
        (await of_leaders(self._cluster, deadline, ask, chunk=_PARTITIONS_PER_REQUEST).run([partition])).result(
            partition
        )
