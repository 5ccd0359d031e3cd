"""What resets of consumer groups and of share groups have in common: partitions, times, and the official words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from groupkeeper.cli.dropin.drop_in import ExecutionFailure, failing
from groupkeeper.cli.dropin.options import Options
from groupkeeper.cli.java import values as java
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.reset import partitions_of, refuse_unusable
from groupkeeper.operations.times import BadDatetime, parse_datetime
from groupkeeper.operations.topics import describe_topics
from groupkeeper.protocol.errors import InvalidTopicException, UnknownTopicOrPartition


async def named_partitions(
    admin: Admin, options: Options, timeout_ms: int, option: str = "topic"
) -> Sequence[TopicPartition]:
    """The partitions that --topic, or the other option, names. Raises BadTopicArgument, ExecutionFailure."""
    arguments = options.texts(option)
    whole = [argument for argument in arguments if ":" not in argument]
    numbered = [argument for argument in arguments if ":" in argument]
    with failing(java.message):
        return await partitions_of(admin, [*numbered, *java.asked_topics(whole)], timeout_ms=timeout_ms)


async def check_partitions(admin: Admin, partitions: Sequence[TopicPartition], timeout_ms: int) -> None:
    """Refuse partitions that don't exist or have no leader.

    Raises ExecutionFailure (of several topics that can't be described, for the one that Java's map has first),
    PartitionsMissing, PartitionsLeaderless.
    """
    topics = java.asked_topics(java.hash_order((partition.topic for partition in partitions), java.string_hash))
    with failing(java.wrapped):
        refuse_unusable(partitions, (await describe_topics(admin, topics, timeout_ms=timeout_ms)).all())


async def refuse_unlistable(
    admin: Admin, partitions: Iterable[TopicPartition], timeout_ms: int, text_of: Callable[[Exception], str]
) -> None:
    """Say of which topic a lookup of log ends finds no metadata. Raises ExecutionFailure."""
    wanted = list(partitions)
    topics = list(dict.fromkeys(partition.topic for partition in wanted))
    if not topics:
        return
    described = await describe_topics(admin, topics, timeout_ms=timeout_ms)
    for partition in wanted:
        failure = described.failed.get(partition.topic)
        if failure is None:
            continue
        if isinstance(failure, InvalidTopicException):
            why = f"due to invalid topic `{partition.topic}`"
        elif isinstance(failure, UnknownTopicOrPartition):
            why = f"because metadata for topic `{partition.topic}` could not be found"
        else:
            raise ExecutionFailure(text_of(failure))
        raise ExecutionFailure(text_of(type(failure)(f"Failed to fetch metadata for partition {partition} {why}")))


def refuse_duplicates(partitions: Sequence[TopicPartition]) -> None:
    """Topics that overlap are too much for the official tool's maps. Raises ExecutionFailure."""
    if len(set(partitions)) < len(partitions):
        twice = next(partition for partition in partitions if partitions.count(partition) > 1)
        raise ExecutionFailure(f"Duplicate key {twice}")


def datetime_ms(options: Options) -> int:
    """The time of --to-datetime. Raises ExecutionFailure."""
    try:
        return parse_datetime(options.texts("to-datetime")[0])
    except BadDatetime as problem:
        raise ExecutionFailure(f"java.text.ParseException: {problem}") from None


def nothing_later(partition: TopicPartition) -> str:
    """Said of a partition without a record from the time on, empty or not."""
    return (
        f"\nWarn: Partition {partition.partition} from topic {partition.topic} is empty. "
        "Falling back to latest known offset.\n"
    )


def not_altered(partitions: Collection[TopicPartition]) -> ExecutionFailure:
    """The failure of a reset of which the coordinator refuses some partitions."""
    names = ", ".join(map(str, java.hash_order(partitions, java.partition_hash)))
    return ExecutionFailure(f"Failed altering group offsets for the following partitions: [{names}]")
