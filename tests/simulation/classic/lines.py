"""Events of a trace as lines."""

from tests.scenarios import texts

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.offsets_topic import Entry, Tombstone
from groupkeeper.protocol.primitives import Message


def event_text(more: object, start_ms: int) -> str:
    """A record, a request or an answer, shortly."""
    if isinstance(more, Entry | Tombstone):
        return texts.record_text(more, start_ms)
    match more:
        case m.JoinGroupRequest():
            offers = ";".join(f"{one.name}:{texts.metadata_text(one.metadata)}" for one in more.protocols)
            return f"member={more.member_id!r} instance={more.group_instance_id} protocols={offers}"
        case m.SyncGroupRequest():
            shares = "; ".join(
                f"{one.member_id} -> {texts.assignment_text(one.assignment)}" for one in more.assignments
            )
            return f"member={more.member_id} generation={more.generation_id} {shares}"
        case m.ConsumerGroupHeartbeatRequest():
            names, regex, owned = more.subscribed_topic_names, more.subscribed_topic_regex, more.topic_partitions
            said = "" if names is None and regex is None else f" topics={names} regex={regex}"
            has = "" if owned is None else f" owns={[(one.topic_id[-1], list(one.partitions)) for one in owned]}"
            return f"member={more.member_id!r}({more.instance_id}) epoch={more.member_epoch}{said}{has}"
        case m.HeartbeatRequest():
            return f"member={more.member_id} generation={more.generation_id}"
        case m.LeaveGroupRequest():
            return ", ".join(f"{one.member_id}({one.group_instance_id})" for one in more.members)
        case m.OffsetCommitRequest():
            offsets = " ".join(
                f"{topic.name}/{one.partition_index}={one.committed_offset}"
                for topic in more.topics
                for one in topic.partitions
            )
            return f"member={more.member_id} generation={more.generation_id_or_member_epoch} {offsets}"
        case Message() if type(more).__name__.endswith("Response"):
            return " | ".join(texts.answer_lines("", more)).partition(":")[2]
        case _:
            return str(more)
