"""CPU time of one OffsetCommit in the broker, from the bytes of the request to those of the reply, without sockets.

`COMMIT_AGAINST=DIR make bench BENCH_ARGS=commit` measures another checkout too, by turns. `COMMIT_ROUNDS` is how many
turns each has (default 20). Commits come in two ways: many at a time on one connection, and one at a time from each of
50 clients of 50 groups.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

COMMITS = 10_000
AT_A_TIME = 200
CLIENTS = 50
SESSION_MS = 1_800_000
"""The longest that a broker allows: on a machine that others use, turns may be minutes apart."""
ROUNDS = int(os.environ.get("COMMIT_ROUNDS", "20"))
TOPIC = "bench-commit"
HERE = Path(__file__).resolve().parent.parent
WAYS = ("pipelined", "50 clients")


class Peer(asyncio.Transport):
    """What a connection takes for its socket; counts the replies."""

    def __init__(self) -> None:
        super().__init__()
        self.missing = 0
        self.first: Any = b""
        self.has_all = asyncio.Event()

    def write(self, data: Any) -> None:
        self.first = self.first or data
        at = 0
        while at < len(data):
            at += 4 + int.from_bytes(data[at : at + 4], "big")
            self.missing -= 1
        if not self.missing:
            self.has_all.set()

    def expect(self, replies: int) -> None:
        """So many replies are due until `has_all` is set."""
        self.missing = replies
        self.has_all.clear()

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        """There is no socket."""

    close = abort


class Client:
    """A member of its own group, on a connection to a broker of the same process."""

    def __init__(self, broker: Any, group_id: str) -> None:
        from groupkeeper.broker.network.connection import Connection

        self.group_id = group_id
        self.peer = Peer()
        self.connection = Connection(broker.server, broker._listeners[0], lambda: None)
        self.connection.connection_made(self.peer)

    async def ask(self, message: Any, version: int) -> Any:
        from groupkeeper.protocol.framing import decode_response, encode_request, response_class

        self.peer.first = b""
        self.feed(encode_request(1, "bench", message, version), 1)
        await self.peer.has_all.wait()
        return decode_response(response_class(message.API_KEY), self.peer.first[4:], version)[1]

    async def join(self) -> None:
        """Joins its group; `frame` is a commit from then on."""
        from groupkeeper.protocol.framing import encode_request
        from groupkeeper.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
        from groupkeeper.protocol.messages.offset_commit_request import (
            OffsetCommitRequest,
            OffsetCommitRequestPartition,
            OffsetCommitRequestTopic,
        )
        from groupkeeper.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment

        protocols = [JoinGroupRequestProtocol("range", b"")]
        join = JoinGroupRequest(self.group_id, SESSION_MS, SESSION_MS, "", None, "consumer", protocols)
        joined = await self.ask(join, 3)
        generation, member = joined.generation_id, joined.member_id
        assignments = [SyncGroupRequestAssignment(member)]
        await self.ask(SyncGroupRequest(self.group_id, generation, member, None, None, None, assignments), 3)
        topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=[OffsetCommitRequestPartition(0, 123_456, -1, "")])]
        self.commit = commit = OffsetCommitRequest(self.group_id, generation, member, None, -1, topics)
        await self.check()
        self.frame = encode_request(1, "consumer-bench-1", commit, 8)

    async def check(self) -> None:
        """Commits once, and makes sure that this is not refused, as it is once the session has expired."""
        answer = await self.ask(self.commit, 8)
        assert answer.topics[0].partitions[0].error_code == 0, answer

    def feed(self, data: bytes, requests: int) -> None:
        """The bytes of so many requests arrive."""
        self.peer.expect(requests)
        self.connection.get_buffer(-1)[: len(data)] = data
        self.connection.buffer_updated(len(data))


async def pipelined(clients: Sequence[Client]) -> None:
    """All commits by one client, many at a time."""
    client = clients[0]
    burst = client.frame * AT_A_TIME
    for _ in range(COMMITS // AT_A_TIME):
        client.feed(burst, AT_A_TIME)
        await client.peer.has_all.wait()


async def by_many(clients: Sequence[Client]) -> None:
    """Commits of all clients, each of which waits for its reply."""
    for _ in range(COMMITS // len(clients)):
        for client in clients:
            client.feed(client.frame, 1)
        for client in clients:
            if client.peer.missing:
                await client.peer.has_all.wait()


async def work() -> None:
    """Measures a round of each way for each line of the standard input."""
    from groupkeeper.broker import Broker

    loop = asyncio.get_running_loop()
    async with Broker(properties={"group.initial.rebalance.delay.ms": 0}) as broker:
        broker.topics.create(TOPIC, 1, {})
        broker.groups.ensure_topic()
        clients = [Client(broker, f"bench-{number}") for number in range(CLIENTS)]
        for client in clients:
            await client.join()
        while await loop.run_in_executor(None, sys.stdin.readline):
            for way in (pipelined, by_many):
                began = time.thread_time()
                await way(clients)
                cost = (time.thread_time() - began) / COMMITS * 1e6
                for client in clients:
                    await client.check()
                print(cost, flush=True)


def worker(checkout: Path) -> "subprocess.Popen[str]":
    """A process that runs a checkout's broker."""
    path = os.pathsep.join((str(checkout / "src"), str(HERE)))
    command = [sys.executable, __file__, "--worker"]
    pipes = partial(subprocess.Popen[str], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return pipes(command, env={**os.environ, "PYTHONPATH": path})


def main() -> None:
    checkouts = [HERE]
    if other := os.environ.get("COMMIT_AGAINST"):
        checkouts.append(Path(other).resolve())
    rounds: dict[Path, list[list[float]]] = {checkout: [] for checkout in checkouts}
    with ExitStack() as stack:
        workers = [stack.enter_context(worker(checkout)) for checkout in checkouts]
        for number in range(ROUNDS):
            turn = list(zip(checkouts, workers, strict=True))
            for checkout, one in turn if number % 2 else reversed(turn):
                assert one.stdin is not None
                assert one.stdout is not None
                print(file=one.stdin, flush=True)
                rounds[checkout].append([float(one.stdout.readline()) for _ in WAYS])
        for one in workers:
            one.terminate()
    for index, way in enumerate(WAYS):
        for checkout, found in rounds.items():
            costs = [costs[index] for costs in found]
            middle = statistics.median(costs)
            print(f"{way:10} best {min(costs):5.2f} µs, median {middle:5.2f} µs of CPU a commit: {checkout}")
        if len(checkouts) > 1:
            mine, theirs = ([costs[index] for costs in rounds[checkout]] for checkout in checkouts)
            ratio = statistics.median(one / two for one, two in zip(mine, theirs, strict=True))
            print(f"{way:10} median of the rounds' ratios {ratio:.3f}")


if __name__ == "__main__":
    if "--worker" in sys.argv:
        import uvloop

        uvloop.run(work())
    else:
        main()
