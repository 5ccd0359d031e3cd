"""Start-up of the group coordinators before and after the offsets topic is compacted.

Sizes by the environment: CLEANING_COMMITS (default 200000), CLEANING_KEYS (1000), CLEANING_LIVE (100000).
"""

from __future__ import annotations

import asyncio
import os
import resource
import tempfile
import time

from groupkeeper.broker import Broker
from groupkeeper.protocol.messages.offset_commit_key import OffsetCommitKey
from groupkeeper.protocol.messages.offset_commit_value import OffsetCommitValue
from groupkeeper.protocol.offsets_topic import Entry, encode_record
from groupkeeper.protocol.record_batch import Record, write_batch

GROUPS = 1


def commit(number: int, key: int, now_ms: int) -> Record:
    entry = Entry(
        OffsetCommitKey(f"group-{key % GROUPS}", "orders", key // GROUPS),
        OffsetCommitValue(number, commit_timestamp=now_ms),
    )
    return Record(*encode_record(entry), (), now_ms)


async def fill(directory: str, commits: int, keys: int) -> None:
    """One batch per commit, as clients of one partition write them."""
    async with Broker(directory=directory, properties={"log.cleaner.enable": "false"}) as broker:
        broker.groups.ensure_topic()
        for number in range(commits):
            now_ms = broker.now_ms()
            key = number % keys
            broker.groups.shard_of(f"group-{key % GROUPS}").log.append(
                write_batch([commit(number, key, now_ms)]), now_ms
            )


async def start(directory: str, what: str, *, compacts: bool = False) -> None:
    began, cpu = time.perf_counter(), time.process_time()
    async with Broker(directory=directory, properties={"log.cleaner.backoff.ms": "3600000"}) as broker:
        while any(shard.is_loading for shard in broker.groups.shards):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(f"{what}: groups loaded after {took:.2f} s ({cpu:.2f} s CPU), at most {peak} MB")
        if compacts:
            began, cpu = time.perf_counter(), time.process_time()
            await broker.cleaner.compact(broker.now_ms())
            took, cpu = time.perf_counter() - began, time.process_time() - cpu
            print(f"compaction: {took:.1f} s ({cpu:.1f} s CPU)")


def main() -> None:
    commits = int(os.environ.get("CLEANING_COMMITS", "200000"))
    keys = int(os.environ.get("CLEANING_KEYS", "1000"))
    live = int(os.environ.get("CLEANING_LIVE", "100000"))
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(fill(directory, commits, keys))
        asyncio.run(start(directory, f"{commits} commits on {keys} keys", compacts=True))
        asyncio.run(start(directory, "the same, compacted"))
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(fill(directory, live, live))
        asyncio.run(start(directory, f"{live} live offsets"))
