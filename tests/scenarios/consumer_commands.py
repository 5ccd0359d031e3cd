"""Commands of scenarios for consumer groups: members that send ConsumerGroupHeartbeat, and the topics they read.

A member is named by its id and remembers what it subscribed to, its epoch, and what it was told to have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.scenarios import texts
from tests.scenarios.group_records import topic_id, topic_name

from groupkeeper.broker.coordination.topics_view import match_topics, regex_error
from groupkeeper.coordinator.kernel.topics_image import TopicShape, TopicsImage
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.consumer_group_heartbeat_request import TopicPartitions
from groupkeeper.protocol.primitives import Message

if TYPE_CHECKING:
    from tests.scenarios.runner import Arguments, Runner

LEAVE, AWAY = -1, -2


@dataclass(slots=True)
class Subscription:
    """What a client knows of itself. `owned` is by topic."""

    names: list[str] = field(default_factory=list)
    regex: str | None = None
    instance_id: str | None = None
    assignor: str | None = None
    timeout_ms: int = 30_000
    epoch: int = 0
    owned: dict[str, list[int]] = field(default_factory=dict)


def beat(runner: Runner, arguments: Arguments) -> None:
    """group=g v= epoch= owned=t1/0,t1/1 or `none`, a member id, then one of
    `join` and topics, with regex= instance= assignor= rebalance=30s: epoch 0 and all that a first heartbeat says;
    `subscribe` and topics, with regex=: another subscription;
    `report`: with what it has; `full`: everything once more, as after a lost answer; `leave`; `away`: leaves for a
    while; nothing: only that it lives. Answered `epoch=2`, followed by the assignment if it is told.
    """
    group_id = arguments.take("group", "g")
    version = arguments.take_version()
    member_id, *words = arguments.take_words()
    what = words.pop(0) if words else "alive"
    known = runner.subscriptions.setdefault((group_id, member_id), Subscription())
    if what in ("join", "subscribe"):
        known.names, known.regex = words, arguments.take_optional("regex")
    if what == "join":
        known.instance_id = arguments.take_optional("instance")
        known.assignor = arguments.take_optional("assignor")
        known.timeout_ms = texts.read_duration(arguments.take("rebalance", "30s"))
    request = _request(group_id, member_id, known, what)
    request.member_epoch = int(arguments.take("epoch", str(request.member_epoch)))
    owned = arguments.take_optional("owned")
    if owned is not None:
        request.topic_partitions = _partitions({} if owned == "none" else texts.read_partitions(owned.split(",")))
    _send(runner, member_id, request, version)


def _request(group_id: str, member_id: str, known: Subscription, what: str) -> m.ConsumerGroupHeartbeatRequest:
    epoch = {"join": 0, "leave": LEAVE, "away": AWAY}.get(what, known.epoch)
    request = m.ConsumerGroupHeartbeatRequest(group_id, member_id, epoch, known.instance_id)
    if what in ("join", "subscribe", "full"):
        request.subscribed_topic_names = known.names
        request.subscribed_topic_regex = known.regex
    if what in ("join", "full"):
        request.rebalance_timeout_ms = known.timeout_ms
        request.server_assignor = known.assignor
    if what in ("join", "full", "report"):
        request.topic_partitions = _partitions({} if what == "join" else known.owned)
    elif what not in ("alive", "subscribe", "leave", "away"):
        raise ValueError(f"not understood: {what}")
    return request


def _partitions(owned: dict[str, list[int]]) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id(topic), partitions) for topic, partitions in owned.items()]


def _send(runner: Runner, who: str, request: m.ConsumerGroupHeartbeatRequest, version: int | None) -> None:
    trouble = regex_error(request.subscribed_topic_regex)
    runner.send(who, request, version, client_id=who, fresh_id="fresh", regex_error=trouble)


def remember(runner: Runner, request: Message, response: m.ConsumerGroupHeartbeatResponse) -> None:
    """A member believes its answers, unless they are errors."""
    assert isinstance(request, m.ConsumerGroupHeartbeatRequest)
    known = runner.subscriptions.get((request.group_id, request.member_id))
    if known is None or response.error_code:
        return
    known.epoch = max(response.member_epoch, 0)
    if response.assignment is not None:
        known.owned = {
            topic_name(topic.topic_id): list(topic.partitions) for topic in response.assignment.topic_partitions
        }


def members(runner: Runner, arguments: Arguments) -> None:
    """groups: their epochs, then each member's epoch, what it has, and what it shall have"""
    runner.send("", m.ConsumerGroupDescribeRequest(arguments.take_words() or ["g"]))


def see_topics(runner: Runner, arguments: Arguments) -> None:
    """t1=4 t2=1: the cluster's topics, all of them, with their numbers of partitions"""
    shell = runner.shell
    given = arguments.take_options() | dict(word.split("=", 1) for word in arguments.take_words())
    topics = {name: TopicShape(name, topic_id(name), int(count)) for name, count in given.items()}
    version = shell.topics.version + 1
    has_new = not topics.keys() <= shell.topics.topics.keys()
    shell.see_topics(TopicsImage(version, version if has_new else shell.topics.version_with_new_topics, topics))


def resolve(runner: Runner, arguments: Arguments) -> None:
    """Answers the oldest lookup of patterns by the cluster's topics; `fail`: it couldn't be found out. Prints which
    patterns were asked for.
    """
    shell = runner.shell
    if not shell.lookups:
        runner.say("nothing to resolve")
        return
    regexes = shell.lookups[0].regexes
    runner.say(f"resolve {' '.join(sorted(regexes))}")
    if arguments.take_words() == ["fail"]:
        shell.resolve(None)
        return
    shell.resolve(match_topics(regexes, shell.topics.topics, lambda topic: True))


def own_settings(runner: Runner, arguments: Arguments) -> None:
    """group=g, then Kafka's names=values of this group's own settings; none: it has those of all groups (GF-02)"""
    group_id = arguments.take("group", "g")
    own = dict(runner.shell.settings_by_group)
    own.pop(group_id, None)
    given = {name: texts.read_setting(name, value) for name, value in arguments.take_options().items()}
    if given:
        own[group_id] = replace(runner.shell.settings, **given)
    runner.shell.see_settings(own)


COMMANDS: dict[str, Callable[[Runner, Arguments], None]] = {
    "beat": beat,
    "members": members,
    "topics": see_topics,
    "resolve": resolve,
    "own-settings": own_settings,
}
