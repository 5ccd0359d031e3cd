"""Commands of scenarios for share groups: members that send ShareGroupHeartbeat, and the share coordinator.

A member is named by its id and remembers its epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.scenarios import texts
from tests.scenarios.group_answers import work_text
from tests.scenarios.group_records import topic_name

from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import BY_CODE
from groupkeeper.protocol.messages import alter_share_group_offsets_request, delete_share_group_offsets_request
from groupkeeper.protocol.primitives import Message

if TYPE_CHECKING:
    from tests.scenarios.runner import Arguments, Runner

LEAVE = -1


def share(runner: Runner, arguments: Arguments) -> None:
    """group=g epoch=, a member id, then one of `join` and topics; `subscribe` and topics; `leave`; nothing: only
    that it lives. Answered `epoch=2`, followed by the assignment if it is told.
    """
    group_id = arguments.take("group", "g")
    member_id, *words = arguments.take_words()
    what = words.pop(0) if words else "alive"
    epoch = {"join": 0, "leave": LEAVE}.get(what, runner.share_epochs.get((group_id, member_id), 0))
    request = m.ShareGroupHeartbeatRequest(
        group_id,
        member_id,
        int(arguments.take("epoch", str(epoch))),
        subscribed_topic_names=words if what in ("join", "subscribe") else None,
    )
    runner.send(member_id, request, client_id=member_id)


def remember(runner: Runner, request: Message, response: m.ShareGroupHeartbeatResponse) -> None:
    """A member believes its answers, unless they are errors."""
    assert isinstance(request, m.ShareGroupHeartbeatRequest)
    if not response.error_code:
        runner.share_epochs[request.group_id, request.member_id] = max(response.member_epoch, 0)


def members(runner: Runner, arguments: Arguments) -> None:
    """groups: their epochs, then each member's epoch and what it has"""
    runner.send("", m.ShareGroupDescribeRequest(arguments.take_words() or ["g"]))


def alter(runner: Runner, arguments: Arguments) -> None:
    """group=g, then `t1/0=5`: AlterShareGroupOffsets"""
    module = alter_share_group_offsets_request
    group_id = arguments.take("group", "g")
    topics: dict[str, list[alter_share_group_offsets_request.AlterShareGroupOffsetsRequestPartition]] = {}
    for word in arguments.take_words():
        place, _, offset = word.partition("=")
        topic, partition = texts.read_partition(place)
        one = module.AlterShareGroupOffsetsRequestPartition(partition, int(offset))
        topics.setdefault(topic, []).append(one)
    wanted = [module.AlterShareGroupOffsetsRequestTopic(topic, some) for topic, some in topics.items()]
    runner.send(group_id or "''", module.AlterShareGroupOffsetsRequest(group_id, wanted))


def delete(runner: Runner, arguments: Arguments) -> None:
    """group=g, then topics: DeleteShareGroupOffsets"""
    module = delete_share_group_offsets_request
    group_id = arguments.take("group", "g")
    topics = [module.DeleteShareGroupOffsetsRequestTopic(topic) for topic in arguments.take_words()]
    runner.send(group_id or "''", module.DeleteShareGroupOffsetsRequest(group_id, topics))


def work(runner: Runner, arguments: Arguments) -> None:
    """The share coordinator does the oldest thing it was asked for; fail=ERROR, then partitions `t1/0`, or none for
    all: it fails for these. Prints what was asked.
    """
    shell = runner.shell
    if not shell.share_work:
        runner.say("nothing to do")
        return
    asked: Any = shell.share_work[0]
    failure = arguments.take_optional("fail")
    failing = arguments.take_words()
    runner.say(f"work: {work_text(asked)}")
    errors = {}
    if failure is not None:
        error = next(one for one in BY_CODE.values() if one.name == failure)
        for key in asked.share_partitions():
            if not failing or f"{topic_name(key.topic_id)}/{key.partition}" in failing:
                errors[key] = error()
    shell.finish_share_work(errors)


def lose_topic(runner: Runner, arguments: Arguments) -> None:
    """A topic of `topics` is deleted."""
    shell = runner.shell
    (name,) = arguments.take_words()
    topics = dict(shell.topics.topics)
    deleted = topics.pop(name)
    version = shell.topics.version + 1
    shell.see_topics(TopicsImage(version, shell.topics.version_with_new_topics, topics))
    shell.remove_topics({name: deleted.topic_id})


COMMANDS: dict[str, Callable[[Runner, Arguments], None]] = {
    "share": share,
    "share-members": members,
    "share-alter": alter,
    "share-delete": delete,
    "work": work,
    "lose-topic": lose_topic,
}
