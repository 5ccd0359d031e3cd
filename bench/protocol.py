"""Codecs: CPU time to encode and decode, beside kio and kafka-python, and to import what a listing needs."""

import gc
import io
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from groupkeeper.protocol import record_batch
from groupkeeper.protocol.codec import decode, encode
from groupkeeper.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse
from groupkeeper.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from groupkeeper.protocol.primitives import RootMessage

ROUNDS = 15
IMPORT_ROUNDS = 15
ENCODE_TARGET = 8.0
"""How many times faster than kio encoding must be."""
DECODE_TARGET = 1.2
"""How many times faster than kafka-python decoding must be."""
IMPORT_TARGET_MS = 30.0

IMPORTS = {
    "protocol: framing and the messages of a listing": (
        "import groupkeeper.protocol.framing, groupkeeper.protocol.errors;"
        "from groupkeeper.protocol.messages import list_groups_request, list_groups_response,"
        " metadata_request, metadata_response, api_versions_request, api_versions_response"
    ),
    "asyncio alone": "import asyncio",
    "client: the admin, and the messages of a listing": (
        "import groupkeeper.client.admin;"
        "from groupkeeper.protocol.messages import list_groups_request, list_groups_response,"
        " metadata_request, metadata_response, api_versions_request, api_versions_response"
    ),
}


def offset_fetch() -> OffsetFetchResponse:
    """1000 groups, each with one topic of 8 partitions."""
    partitions = [OffsetFetchResponsePartitions(i, 1_000_000 + i, 3, "", 0) for i in range(8)]
    topics = [[OffsetFetchResponseTopics(f"topic-{i}", partitions=partitions)] for i in range(50)]
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(f"group-{i:05}", topics[i % 50]) for i in range(1000)])


def list_groups() -> ListGroupsResponse:
    """10,000 groups."""
    return ListGroupsResponse(
        groups=[ListedGroup(f"group-{i:05}", "consumer", "Stable", "Classic") for i in range(10_000)]
    )


def compare(title: str, rounds: int, candidates: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median CPU milliseconds of each candidate; they take turns, so that a change of the machine's speed meets all."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, run in candidates.items():
            gc.collect()
            started = time.process_time()
            run()
            times[name].append((time.process_time() - started) * 1000)
    medians = {name: statistics.median(values) for name, values in times.items()}
    figures = "   ".join(f"{name} {value:7.2f} ms" for name, value in medians.items())
    print(f"{title:<44} {figures}")
    return medians


def verdict(what: str, factor: float, target: float) -> None:
    print(f"    {what}: {factor:.2f}x, target {target}x: {'met' if factor >= target else 'NOT met'}")


def codecs(message: RootMessage, version: int, title: str, kio_module: str, kafka_python: Any) -> None:
    from kio.serial import entity_reader, entity_writer

    body = encode(message, version)
    kio_class = getattr(__import__(kio_module, fromlist=["x"]), type(message).__name__)
    kio_reader, kio_writer = entity_reader(kio_class), entity_writer(kio_class)
    kio_value, _ = kio_reader(body, 0)
    other = kafka_python.decode(body, version=version)
    for name in ("_header", "_min_version", "_max_version"):
        setattr(other, name, None)  # its decoder leaves them out, its encoder needs them

    def kio_encode() -> bytes:
        out = io.BytesIO()
        kio_writer(out, kio_value)
        return out.getvalue()

    assert kio_encode() == body
    assert bytes(other.encode(version=version)) == body
    times = compare(
        f"{title}: encode {len(body)} bytes",
        ROUNDS,
        {
            "groupkeeper": lambda: encode(message, version),
            "kio": kio_encode,
            "kafka-python": lambda: other.encode(version=version),
        },
    )
    verdict("encode against kio", times["kio"] / times["groupkeeper"], ENCODE_TARGET)
    times = compare(
        f"{title}: decode",
        ROUNDS,
        {
            "groupkeeper": lambda: decode(type(message), body, version),
            "kio": lambda: kio_reader(body, 0),
            "kafka-python": lambda: kafka_python.decode(body, version=version),
        },
    )
    verdict("decode against kafka-python", times["kafka-python"] / times["groupkeeper"], DECODE_TARGET)


def batches() -> None:
    """10,000 records of 100 bytes in batches of 1000, beside kafka-python."""
    from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

    records = [record_batch.Record(b"key-%d" % i, bytes(100), (), 1_700_000_000_000 + i) for i in range(1000)]
    batch = record_batch.write_batch(records)

    def theirs_written() -> None:
        for _ in range(10):
            builder = MemoryRecordsBuilder(2, 0, 1 << 20)
            for record in records:
                builder.append(record.timestamp, record.key, record.value)
            builder.close()

    compare(
        "10,000 records: write",
        5,
        {"groupkeeper": lambda: [record_batch.write_batch(records) for _ in range(10)], "kafka-python": theirs_written},
    )
    compare(
        "10,000 records: read",
        5,
        {
            "groupkeeper": lambda: [record_batch.read_records(batch) for _ in range(10)],
            "kafka-python": lambda: [record for _ in range(10) for part in MemoryRecords(batch) for record in part],
        },
    )


def cpu_ms(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def imports() -> None:
    for title, code in IMPORTS.items():
        cpu_ms(code)  # compiles the modules where that has not happened yet
        extra = [cpu_ms(code) - cpu_ms("pass") for _ in range(IMPORT_ROUNDS)]
        cost = statistics.median(extra)
        met = f", target {IMPORT_TARGET_MS:.0f} ms: {'met' if cost <= IMPORT_TARGET_MS else 'NOT met'}"
        print(f"import of {title}: {cost:.1f} ms CPU over bare Python{'' if code == 'import asyncio' else met}")


def main() -> None:
    from kafka.protocol.admin.groups import ListGroupsResponse as TheirListGroups
    from kafka.protocol.consumer.group import OffsetFetchResponse as TheirOffsetFetch

    codecs(offset_fetch(), 9, "OffsetFetch v9, 1000 x 8", "kio.schema.offset_fetch.v9.response", TheirOffsetFetch)
    codecs(list_groups(), 5, "ListGroups v5, 10,000", "kio.schema.list_groups.v5.response", TheirListGroups)
    batches()
    imports()
