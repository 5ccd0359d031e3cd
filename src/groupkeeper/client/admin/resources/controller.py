"""Requests to the controller, one broker or every broker, with retries until the deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from groupkeeper.client.batch import Failure
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.errors import BrokersNotFound, CallTimedOut, ClientError, ConnectionFailed, IllegalArgument
from groupkeeper.client.peer import Request
from groupkeeper.client.topology import Node
from groupkeeper.protocol.errors import KafkaError, NotController, error_for
from groupkeeper.protocol.framing import api_name
from groupkeeper.protocol.primitives import RootMessage

A = TypeVar("A", bound=RootMessage)

NOT_CONTROLLER = 41

_LOADING = (14, 15)
"""Error codes COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE: worth retrying."""


async def ask_controller(
    cluster: Cluster, answer_type: type[A], request: Request, deadline: Deadline, is_refused: Callable[[A], bool]
) -> A:
    """Ask the controller (with KRaft any broker, which forwards the request); look it up again when it has moved."""
    backoff = cluster.backoff()
    failure: ClientError | NotController
    while True:
        await cluster.refresh(deadline)
        peer = cluster.peer_by_id(cluster.controller_id)
        try:
            if peer is None:
                # Metadata 0 doesn't name the controller, and a cluster may be without one for a while.
                response = await cluster.ask_any(answer_type, request, deadline)
            else:
                response = await peer.ask(answer_type, request, deadline)
            if not is_refused(response):
                return response
            failure = NotController()
        except (ConnectionFailed, CallTimedOut) as error:
            failure = error
        await backoff.pause(deadline, failure)


async def ask_broker(cluster: Cluster, broker_id: int, answer_type: type[A], request: Request, deadline: Deadline) -> A:
    """Send a request to a broker by its id, with retries. Raises IllegalArgument when there is no such broker."""
    backoff = cluster.backoff()
    while True:
        await cluster.refresh(deadline)
        peer = cluster.peer_by_id(broker_id)
        if peer is None:
            there = ", ".join(map(str, sorted(cluster.nodes))) or "none"
            raise IllegalArgument(f"the cluster has no broker {broker_id}; its brokers are {there}")
        try:
            return await peer.ask(answer_type, request, deadline)
        except (ConnectionFailed, CallTimedOut) as error:
            await backoff.pause(deadline, error)


async def ask_every_broker(
    cluster: Cluster, answer_type: type[A], request: Request, deadline: Deadline, error_code: Callable[[A], int]
) -> dict[Node, A | Failure]:
    """Send a request to all brokers concurrently; returns the response or the failure of each.

    Retriable errors are retried until the deadline. Raises BrokersNotFound when no broker is known for the request.
    """
    try:
        await cluster.refresh(deadline)
    except (ClientError, KafkaError) as error:
        name = api_name(answer_type.API_KEY)
        raise BrokersNotFound(f"Failed to find brokers to send {name}: {error}") from error

    async def ask(node: Node) -> A | Failure:
        backoff = cluster.backoff()
        failure: Failure | None = None
        while True:
            try:
                peer = cluster.peer(cluster.nodes.get(node.id, node))
                response = await peer.ask(answer_type, request, deadline)
                if error_code(response) == 0:
                    return response
                failure = error_for(error_code(response))
                if failure.code not in _LOADING:
                    return failure
            except (ConnectionFailed, CallTimedOut) as error:
                if failure is None or not deadline.has_passed:
                    failure = error
            except ClientError as error:
                return error
            try:
                await backoff.pause(deadline, failure)
                if isinstance(failure, ClientError):
                    await cluster.refresh(deadline)  # the broker may have moved to another address
            except (ClientError, KafkaError) as error:
                return error

    nodes = list(cluster.nodes.values())
    return dict(zip(nodes, await asyncio.gather(*map(ask, nodes)), strict=True))
