"""Asking the controller, or one certain broker, again and again until the deadline."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from groupkeeper.client.errors import (
    CallTimedOut,
    ClientError,
    ConnectionFailed,
    IllegalArgument,
    UnsupportedVersion,
)
from groupkeeper.protocol.errors import NotController
from groupkeeper.protocol.primitives import RootMessage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from groupkeeper.client.cluster import Cluster
    from groupkeeper.client.timing import Deadline

A = TypeVar("A", bound=RootMessage)
R = TypeVar("R", bound=RootMessage)

NOT_CONTROLLER = 41


async def ask_controller(
    cluster: Cluster,
    request_type: type[R],
    answer_type: type[A],
    build: Callable[[int], R],
    deadline: Deadline,
    is_refused: Callable[[A], bool],
) -> A:
    """Ask the controller (with KRaft any broker, which passes it on); look it up again when it has moved."""
    backoff = cluster.backoff()
    failure: ClientError | NotController
    while True:
        await cluster.refresh(deadline)
        peer = cluster.peer_by_id(cluster.controller_id)
        try:
            if peer is None:
                # Metadata 0 doesn't name the controller, and a cluster may be without one for a while.
                answer = await cluster.ask_any(request_type, answer_type, build, deadline)
            else:
                answer = await peer.ask(request_type, answer_type, build, deadline)
            if not is_refused(answer):
                return answer
            failure = NotController()
        except (ConnectionFailed, CallTimedOut) as error:
            failure = error
        await backoff.pause(deadline, failure)


async def ask_broker(
    cluster: Cluster,
    broker_id: int,
    request_type: type[R],
    answer_type: type[A],
    build: Callable[[int], R],
    deadline: Deadline,
) -> A:
    """Ask one broker by its id, until it answers. Raises IllegalArgument when the cluster has no such broker."""
    backoff = cluster.backoff()
    while True:
        await cluster.refresh(deadline)
        peer = cluster.peer_by_id(broker_id)
        if peer is None:
            there = ", ".join(map(str, sorted(cluster.nodes))) or "none"
            raise IllegalArgument(f"the cluster has no broker {broker_id}; its brokers are {there}")
        try:
            return await peer.ask(request_type, answer_type, build, deadline)
        except (ConnectionFailed, CallTimedOut) as error:
            await backoff.pause(deadline, error)


@contextmanager
def since(call: str, release: str) -> Iterator[None]:
    """What an older broker doesn't know is refused with the name of the call, and the Kafka that brought it."""
    try:
        yield
    except UnsupportedVersion as error:
        raise UnsupportedVersion(f"{call} needs Kafka {release} or later: {error}") from error


def broker_timeout_ms(deadline: Deadline) -> int:
    """What is left of a call's time, as requests to the controller tell it."""
    return max(1, int(deadline.left_s() * 1000))
