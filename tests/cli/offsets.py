"""Offsets of a group, committed and looked at from outside of it."""

from collections.abc import Mapping

from groupkeeper import SyncAdmin
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition


def commit(servers: str, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
    with SyncAdmin(servers) as admin:
        wanted = {place: OffsetAndMetadata(offset) for place, offset in offsets.items()}
        admin.alter_consumer_group_offsets(group_id, wanted).all()


def committed(servers: str, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
    with SyncAdmin(servers) as admin:
        found = admin.list_consumer_group_offsets({group_id: None}).result(group_id).all()
    return {place: commit for place, commit in found.items() if commit is not None}
