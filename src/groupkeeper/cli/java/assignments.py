"""The assignments of classic members as Apache's client reads them, which takes some that ours does not."""

from __future__ import annotations

from io import BytesIO

from groupkeeper.client.admin.types import Batch, ConsumerGroupDescription, TopicPartition
from groupkeeper.client.errors import ClientError


class Unreadable(ClientError):
    """The text is Java's."""

    def __init__(self, java_class: str, text: str) -> None:
        super().__init__(text)
        self.java_class = java_class


def read_again(described: Batch[str, ConsumerGroupDescription]) -> None:
    """Read the unreadable assignments of groups as Java does: where it cannot, the group has failed."""
    for group_id, group in list(described.done.items()):
        if all(member.is_assignment_readable for member in group.members):
            continue
        try:
            members = tuple(
                one if one.is_assignment_readable else one._replace(assignment=read(one.assignment_blob))
                for one in group.members
            )
            described.done[group_id] = group._replace(members=members)
        except Unreadable as failure:
            del described.done[group_id]
            described.failed[group_id] = failure


def read(blob: bytes) -> tuple[TopicPartition, ...]:
    """The partitions. Raises Unreadable."""
    stream = BytesIO(blob)

    def left() -> int:
        return len(blob) - stream.tell()

    def number(size: int, part: str = "assignment") -> int:
        if left() < size:
            raise Unreadable(_SCHEMA, f"Buffer underflow while parsing consumer protocol's {part}")
        return int.from_bytes(stream.read(size), "big", signed=True)

    def length_of(field: str, size: int = 4) -> int:
        length = number(size)
        if length < 0:
            raise Unreadable(_RUNTIME, f"non-nullable field {field} was serialized as null")
        if length > left() and size == 4:
            text = f"collection of size {length}, but there are only {left()} bytes remaining."
            raise Unreadable(_RUNTIME, f"Tried to allocate a {text}")
        if length > left():
            text = f"byte array of {length} byte(s): only {left()} byte(s) available"
            raise Unreadable(_RUNTIME, f"Error reading {text}")
        return length

    version = number(2, "header")
    if version < 0:
        raise Unreadable(_SCHEMA, f"Unsupported assignment version: {version}")
    tps: list[TopicPartition] = []
    for _ in range(length_of("assignedPartitions")):
        topic = stream.read(length_of("topic", 2)).decode(errors="replace")
        tps += [TopicPartition(topic, number(4)) for _ in range(length_of("partitions"))]
    user_bytes = number(4)
    if user_bytes > left():
        raise Unreadable("java.lang.IllegalArgumentException", f"newLimit > capacity: ({user_bytes} > {left()})")
    return tuple(tps)


_RUNTIME = "java.lang.RuntimeException"
_SCHEMA = "org.apache.kafka.common.protocol.types.SchemaException"
