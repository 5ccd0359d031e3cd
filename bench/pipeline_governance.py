"""What privacy, checks of quality, forgetting and checkpoints cost, in CPU of all processes.

Privacy: batches of decoded records, in this process. Quality and forgetting: a directory whose history has 4,000,000
commits of 64,000 offsets, 2,000 groups. Checkpoints: 200 with the 100 batches that Spark keeps.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from bench.pipeline_refresh import GROUPS, PARTITIONS, commit, lengthen, serving
from groupkeeper.operations.selection import Names
from groupkeeper.pipeline.tables import DECODED

HERE = Path(__file__).resolve()
COMMITS, GROUP_RECORDS, MEMBERS = 1_000_000, 20_000, 8
BATCH = 32_768
HISTORY = 4_000_000
CHECKPOINTS, BATCHES = 200, 100
KEY = b"a key that nobody guesses"


def privacy() -> None:
    from groupkeeper.pipeline.decode.privacy import Privacy

    chosen = Privacy.of({"hosts": "drop", "client_ids": "salt", "metadata": "salt"}, KEY)
    for what, texts in (
        ("the same metadata", ["by consumer-1"] * BATCH),
        ("metadata of its own", [f"offset by consumer-1 at {number}" for number in range(BATCH)]),
    ):
        batch = _batch(metadata=pa.array(texts, pa.string()))
        cpu_s = _cpu(lambda batch=batch: [chosen.applied(batch) for _ in range(COMMITS // BATCH)])  # type: ignore[misc]
        print(f"privacy of {COMMITS:,} commits with {what}: {cpu_s:.2f} s CPU", flush=True)
    member = {
        "memberId": "app-7f3",
        "clientId": "app",
        "clientHost": "/10.0.0.7",
        "subscription": "AAEAAAABAAZvcmRlcnM=",
    }
    value = json.dumps({"protocolType": "consumer", "members": [member] * MEMBERS})
    own = {"member_id": "app-7f3", "client_id": "app", "client_host": "/10.0.0.7", "subscribed_topics": ["orders"]}
    text = json.dumps({"record_name": "GroupMetadata", "members": [own] * MEMBERS, "value_json": value})
    batch = _batch(group_record=pa.array([text] * GROUP_RECORDS, pa.string()))
    cpu_s = _cpu(lambda: chosen.applied(batch))
    print(f"privacy of {GROUP_RECORDS:,} records of groups with {MEMBERS} members: {cpu_s:.2f} s CPU", flush=True)


def _batch(**columns: pa.Array) -> pa.RecordBatch:
    count = len(next(iter(columns.values())))
    found = [columns.get(field.name, pa.nulls(count, field.type)) for field in DECODED.arrow]
    return pa.RecordBatch.from_arrays(found, schema=DECODED.arrow)


def _cpu(work: Callable[[], object]) -> float:
    """The least of three, in this process."""
    found = []
    for _ in range(3):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def checkpoints() -> None:
    from groupkeeper.pipeline.checkpoints.folders import find_folders
    from groupkeeper.pipeline.checkpoints.queries import read_query

    with tempfile.TemporaryDirectory() as directory:
        offsets = json.dumps({"orders": {str(number): 1000 for number in range(PARTITIONS)}})
        for number in range(CHECKPOINTS):
            for name in ("offsets", "commits", "sources/0"):
                (Path(directory) / f"q{number}" / name).mkdir(parents=True)
            root = Path(directory) / f"q{number}"
            (root / "metadata").write_text('{"id":"fe80e110-df22-430b-9434-05f9a6c0d4a4"}')
            for batch in range(BATCHES):
                (root / f"offsets/{batch}").write_text(f'v1\n{{"batchWatermarkMs":0,"conf":{{}}}}\n{offsets}')
                (root / f"commits/{batch}").write_text('v1\n{"nextBatchWatermarkMs":0}')
        now_ms = time.time_ns() // 10**6

        def read() -> None:
            folders = find_folders(f"{directory}/q*")
            assert len([read_query(folder, "q", at_ms=now_ms) for folder in folders]) == CHECKPOINTS

        cpu_s = _cpu(read)
        print(f"checkpoints: {1000 * cpu_s / CHECKPOINTS:.2f} ms CPU for each of {CHECKPOINTS}", flush=True)


def tables(servers: str) -> None:
    from groupkeeper.pipeline.governance.forget import ForgetRequest, forget
    from groupkeeper.pipeline.governance.quality import check_directory
    from groupkeeper.pipeline.jobs.snapshot import snapshot
    from groupkeeper.pipeline.session import start_session

    spark = start_session("bench")
    asyncio.run(commit(servers, GROUPS, 0))
    with tempfile.TemporaryDirectory() as directory:
        kept = f"{directory}/all"
        summary = snapshot(spark, {"kafka.bootstrap.servers": servers, "cluster": "bench"}, kept)
        assert not summary.problems, summary.problems
        lengthen(spark, kept, HISTORY)
        spark.stop()
        began = time.process_time()
        checks, _ = check_directory(kept)
        print(
            f"quality of {HISTORY:,} commits: {time.process_time() - began:.1f} s CPU, {len(checks)} checks", flush=True
        )
        for execute in (False, True):
            began = time.process_time()
            found = forget(kept, ForgetRequest(Names(("group-00007",))), execute=execute)
            name = "forget" if execute else "forget, dry run"
            rows = sum(found.rows.values())
            print(f"{name}: {time.process_time() - began:.1f} s CPU for {rows:,} rows", flush=True)


def main() -> None:
    privacy()
    checkpoints()
    with serving() as (servers, environment):
        subprocess.run([sys.executable, str(HERE), "tables", servers], check=True, env=environment)


if __name__ == "__main__":
    if sys.argv[1:2] == ["tables"]:
        tables(sys.argv[2])
    else:
        main()
