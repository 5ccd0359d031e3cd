"""Commands of scenarios for streams groups: members that send StreamsGroupHeartbeat.

A member is named by its id and remembers its epoch, and its tasks as it was told them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages import streams_group_heartbeat_request as request_message
from groupkeeper.protocol.primitives import Message

if TYPE_CHECKING:
    from tests.scenarios.runner import Arguments, Runner

LEAVE = -1


def streams(runner: Runner, arguments: Arguments) -> None:
    """group=g epoch= process=, a member id, then one of these; answered `epoch=2`, the tasks if they are told, and
    what else there is to say in brackets.

    `join` and subtopologies `0:t1,t2` that read topics, with topology-epoch= endpoint= rebalance=: `>t3` is a
    repartition topic that a subtopology writes, `<t3` one that it reads, `+t4` a changelog;
    `has` and tasks `0_1` `s0_2`, or nothing, the tasks it has now;
    `shutdown`, it is alive and wants the application's end; `leave`; nothing: only that it lives.
    """
    member_id, *words = arguments.take_words()
    group_id = arguments.take("group", "g")
    what = words.pop(0) if words else "alive"
    epoch = {"join": 0, "leave": LEAVE}.get(what, runner.streams_epochs.get((group_id, member_id), 0))
    request = request_message.StreamsGroupHeartbeatRequest(
        group_id, member_id, int(arguments.take("epoch", str(epoch))), shutdown_application=what == "shutdown"
    )
    if what == "join":
        request.rebalance_timeout_ms = int(arguments.take("rebalance", "60")) * 1000
        request.process_id = arguments.take("process", f"p-{member_id}")
        subtopologies = [_subtopology(word) for word in words]
        request.topology = request_message.Topology(int(arguments.take("topology-epoch", "0")), subtopologies)
        endpoint = arguments.take_optional("endpoint")
        if endpoint is not None:
            request.user_endpoint = request_message.Endpoint(endpoint, 80)
    if what in ("join", "has"):
        given = [] if what == "join" else words
        request.active_tasks = _tasks([word for word in given if not word.startswith("s")])
        request.standby_tasks = _tasks([word[1:] for word in given if word.startswith("s")])
        request.warmup_tasks = []
    runner.send(member_id, request, client_id=member_id)


def _subtopology(word: str) -> request_message.Subtopology:
    subtopology_id, _, text = word.partition(":")
    topics = text.split(",") if text else []
    info = request_message.TopicInfo
    return request_message.Subtopology(
        subtopology_id,
        [topic for topic in topics if topic[0] not in "<>+"],
        state_changelog_topics=[info(topic[1:]) for topic in topics if topic[0] == "+"],
        repartition_sink_topics=[topic[1:] for topic in topics if topic[0] == ">"],
        repartition_source_topics=[info(topic[1:]) for topic in topics if topic[0] == "<"],
    )


def _tasks(words: Sequence[str]) -> list[request_message.TaskIds]:
    tasks: dict[str, list[int]] = {}
    for word in words:
        subtopology_id, index = re.fullmatch(r"(.+)_(-?\d+)", word).groups()  # type: ignore[union-attr]
        tasks.setdefault(subtopology_id, []).append(int(index))
    return [request_message.TaskIds(*one) for one in tasks.items()]


def remember(runner: Runner, request: Message, response: Message) -> None:
    """A member believes its answers, unless they are errors."""
    if isinstance(response, m.StreamsGroupHeartbeatResponse) and not response.error_code:
        assert isinstance(request, request_message.StreamsGroupHeartbeatRequest)
        runner.streams_epochs[request.group_id, request.member_id] = max(response.member_epoch, 0)


def members(runner: Runner, arguments: Arguments) -> None:
    """groups: their epochs and topologies, then each member's epoch, what it has, and what it shall have"""
    runner.send("", m.StreamsGroupDescribeRequest(arguments.take_words() or ["g"]))


COMMANDS: dict[str, Callable[[Runner, Arguments], None]] = {"streams": streams, "streams-members": members}
