"""Transactions and producers as their brokers know them, log directories: the truth is what a producer has done."""

import asyncio
import re

import pytest
from confluent_kafka import KafkaException, Producer
from tests.acts import begin_transaction, produce
from tests.conformance.client.admin.conftest import Target
from tests.conformance.client.admin.waiting import until

from groupkeeper import Admin, Batch, ProducerState, TopicPartition, TransactionState
from groupkeeper.errors import IllegalArgument, TransactionalIdNotFound, UnknownTopicOrPartition, UnsupportedVersion


def open_transaction(servers: str, tp: TopicPartition) -> Producer:
    """A producer whose id is the topic's name, and which has one record in an open transaction."""
    return begin_transaction(servers, tp.topic, tp.topic, [b"x"], tp.partition, **{"linger.ms": 0, "log_level": 0})


async def test_an_open_transaction(own: Admin, target: Target, tp: TopicPartition) -> None:
    producer = await asyncio.to_thread(open_transaction, target.bootstrap_servers, tp)
    listing = (await own.list_transactions()).all()[tp.topic]
    assert listing.state == TransactionState.ONGOING
    of_state = await own.list_transactions(states=[TransactionState.ONGOING], producer_ids=[listing.producer_id])
    assert list(of_state.all()) == [tp.topic]
    assert tp.topic not in (await own.list_transactions(states=["CompleteCommit"])).all()

    described = await own.describe_transactions([tp.topic, f"{tp.topic}-missing"])
    assert isinstance(described.failed[f"{tp.topic}-missing"], TransactionalIdNotFound)
    transaction = described.done[tp.topic]
    assert (transaction.state, transaction.producer_id) == (TransactionState.ONGOING, listing.producer_id)
    assert (transaction.partitions, transaction.timeout_ms) == ((tp,), 60_000)
    assert transaction.started_ms

    gone = TopicPartition(tp.topic, 7)
    producers = await own.describe_producers([tp, gone])
    assert isinstance(producers.failed[gone], UnknownTopicOrPartition)
    (state,) = producers.done[tp]
    assert (state.producer_id, state.producer_epoch) == (listing.producer_id, transaction.producer_epoch)
    assert (state.transaction_start, state.last_sequence) == (0, 0)

    await asyncio.to_thread(producer.commit_transaction, 20)
    ended = await until(
        lambda: own.describe_transactions([tp.topic]),
        lambda found: found.done[tp.topic].state == TransactionState.COMPLETE_COMMIT,
    )
    assert ended.done[tp.topic].partitions == ()
    ((state,),) = (await own.describe_producers([tp])).all().values()
    assert state.transaction_start is None


async def test_filters_that_newer_brokers_know(own: Admin, target: Target, tp: TopicPartition) -> None:
    producer = await asyncio.to_thread(open_transaction, target.bootstrap_servers, tp)
    everything = await own.list_transactions(transactional_id_pattern=f"{re.escape(tp.topic[:-2])}.*")
    if everything.failed:  # before 4.1
        (failure,) = everything.failed.values()
        assert isinstance(failure, UnsupportedVersion)
        assert str(failure) == "listTransactions by a pattern of transactional ids needs Kafka 4.1 or later"
    else:
        assert list(everything.all()) == [tp.topic]
    assert tp.topic not in (await own.list_transactions(min_duration_ms=3_600_000)).all()
    assert tp.topic in (await own.list_transactions(min_duration_ms=0)).all()
    refused = await own.list_transactions(states=["Sleeping"])
    (failure,) = refused.failed.values()
    assert isinstance(failure, IllegalArgument)
    assert str(failure) == "the broker has no such state of transactions: Sleeping"
    await asyncio.to_thread(producer.abort_transaction, 20)


async def test_a_fenced_producer_cannot_commit(own: Admin, target: Target, tp: TopicPartition) -> None:
    producer = await asyncio.to_thread(open_transaction, target.bootstrap_servers, tp)
    before = (await own.describe_transactions([tp.topic])).all()[tp.topic]
    fenced = (await own.fence_producers([tp.topic])).all()[tp.topic]
    assert fenced.producer_id == before.producer_id
    assert fenced.producer_epoch > before.producer_epoch
    with pytest.raises(KafkaException):
        await asyncio.to_thread(producer.commit_transaction, 20)

    def has_ended(found: Batch[TopicPartition, tuple[ProducerState, ...]]) -> bool:
        return all(each.transaction_start is None for each in found.done[tp])

    await until(lambda: own.describe_producers([tp]), has_ended)


async def test_a_transaction_is_aborted_in_a_partition(own: Admin, target: Target, tp: TopicPartition) -> None:
    producer = await asyncio.to_thread(open_transaction, target.bootstrap_servers, tp)
    ((state,),) = (await own.describe_producers([tp])).all().values()
    await own.abort_transaction(tp, state)
    ((state,),) = (await own.describe_producers([tp])).all().values()
    assert state.transaction_start is None
    with pytest.raises(UnknownTopicOrPartition):
        await own.abort_transaction(TopicPartition(tp.topic, 7), state, timeout_ms=5000)
    await asyncio.to_thread(producer.abort_transaction, 20)


async def test_log_dirs(own: Admin, target: Target, tp: TopicPartition) -> None:
    await asyncio.to_thread(produce, target.bootstrap_servers, tp.topic, [b"x" * 5000])
    (node,) = (await own.describe_cluster()).nodes
    found = await own.describe_log_dirs([node.id, 99], partitions=[tp])
    assert isinstance(found.failed[99], IllegalArgument)
    (log_dir,) = found.done[node.id].values()
    assert log_dir.error is None
    assert list(log_dir.replicas) == [tp]
    assert 5000 < log_dir.replicas[tp].size < 6000
    assert (log_dir.replicas[tp].lag, log_dir.replicas[tp].is_future) == (0, False)
    assert log_dir.total_bytes
    assert log_dir.usable_bytes
    assert log_dir.usable_bytes <= log_dir.total_bytes
    everything = (await own.describe_log_dirs()).all()[node.id]
    assert any(tp in each.replicas for each in everything.values())
