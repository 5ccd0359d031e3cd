"""`groupkeeper serve` on 10,000 groups × 8 partitions: CPU and memory, polls, scrapes, requests; and others beside it.

Beside it: polling with kafka-python, and kafka_exporter where $KAFKA_EXPORTER names its program. BENCH_GROUPS sets
another number of groups, BENCH_MINUTES how long is measured. Requests are counted by the embedded broker.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tools.apache_kafka import ApacheKafka, ApacheKafkaUnavailable, free_port

from bench._filling import PARTITIONS, TOPIC, fill
from bench._measure import cost_of
from bench.commands import KAFKA_PYTHON
from groupkeeper.testing.background import BackgroundBroker

GROUPS = int(os.environ.get("BENCH_GROUPS", "10000"))
MINUTES = float(os.environ.get("BENCH_MINUTES", "1"))
SCRAPES = 20
INTERVAL_S = 15
COMMAND = str(Path(sys.executable).with_name("groupkeeper"))


class Usage(NamedTuple):
    """CPU seconds so far, memory now and at most, in MB."""

    cpu_s: float
    now_mb: float
    most_mb: float


def usage_of(pid: int) -> Usage:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    ticks = os.sysconf("SC_CLK_TCK")
    mb = [int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")]
    return Usage((int(fields[11]) + int(fields[12])) / ticks, *mb)


@contextmanager
def running(command: list[str], url: str, is_ready: Callable[[bytes], bool]) -> Iterator[int]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while True:
                try:
                    if is_ready(scrape(url)[1]):
                        break
                except OSError:
                    pass
                time.sleep(0.2)
            yield process.pid
        finally:
            process.terminate()


def scrape(url: str, **headers: str) -> tuple[float, bytes]:
    started = time.perf_counter()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with urllib.request.urlopen(urllib.request.Request(url, headers=named), timeout=120) as answer:
        body = answer.read()
    return time.perf_counter() - started, body


def value(body: bytes, name: str) -> float:
    return next(float(line.split()[-1]) for line in body.decode().splitlines() if line.startswith(name))


def measure_ours(servers: str, *words: str) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/metrics"
    history = Path(f"/tmp/bench-serve-{port}.sqlite")
    command = [COMMAND, "serve", "--bootstrap-server", servers, "--port", str(port), "--interval", f"{INTERVAL_S}s",
               "--history", str(history), *words]  # fmt: skip
    with running(command, url, lambda body: b"groupkeeper_group_lag{" in body or b"kminion" in body) as pid:
        before, began = usage_of(pid), time.perf_counter()
        time.sleep(60 * MINUTES)
        after, took_min = usage_of(pid), (time.perf_counter() - began) / 60
        plain = [scrape(url) for _ in range(SCRAPES)]
        packed = [scrape(url, Accept_Encoding="gzip") for _ in range(SCRAPES)]
        body = plain[-1][1]
        site = url.removesuffix("/metrics")
        pages = {
            path: max(scrape(site + path)[0] for _ in range(SCRAPES)) for path in ("/", "/cluster?cluster=default")
        }
        print(
            f"  serve {' '.join(words)}: {(after.cpu_s - before.cpu_s) / took_min:.2f} CPU s a minute, "
            f"{after.now_mb:.0f} MB, at most {usage_of(pid).most_mb:.0f} MB; "
            f"a poll {value(body, 'groupkeeper_collector_poll_seconds'):.2f} s; "
            f"{value(body, 'groupkeeper_exporter_series'):,.0f} series, {len(body) / 1e6:.1f} MB; a scrape "
            f"{statistics.median(s for s, _ in plain):.3f} s (at most {max(s for s, _ in plain):.3f}), gzip "
            f"{statistics.median(s for s, _ in packed):.3f} s (at most {max(s for s, _ in packed):.3f}); "
            f"pages: {', '.join(f'{path} {took_s:.3f} s' for path, took_s in pages.items())} at most; "
            f"history {sum(path.stat().st_size for path in history.parent.glob(f'{history.name}*')) / 1e6:.1f} MB"
        )
    for path in history.parent.glob(f"{history.name}*"):
        path.unlink()


def measure_exporter(program: str, servers: str) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/metrics"
    command = [program, f"--kafka.server={servers}", f"--web.listen-address=127.0.0.1:{port}"]
    with running(command, url, lambda body: b"kafka_consumergroup_lag{" in body) as pid:
        before, began = usage_of(pid), time.perf_counter()
        times = []
        while time.perf_counter() - began < 60 * MINUTES:
            took_s, body = scrape(url)
            times.append(took_s)
            time.sleep(max(0.0, INTERVAL_S - took_s))
        after, took_min = usage_of(pid), (time.perf_counter() - began) / 60
        cpu_s = (after.cpu_s - before.cpu_s) / took_min
        print(
            f"  kafka_exporter, scraped every {INTERVAL_S} s: {cpu_s:.2f} CPU s a minute, {after.now_mb:.0f} MB, at "
            f"most {after.most_mb:.0f} MB; a scrape {statistics.median(times):.3f} s, {len(body) / 1e6:.1f} MB"
        )


def measure(servers: str) -> None:
    measure_ours(servers)
    measure_ours(servers, "--series", "partitions")
    cost = cost_of([sys.executable, "-c", KAFKA_PYTHON, servers])
    polls = 60 / INTERVAL_S
    print(f"  polling with kafka-python as often: {cost.cpu_s * polls:.2f} CPU s a minute, {cost.memory_mb:.0f} MB")
    if "KAFKA_EXPORTER" in os.environ:
        measure_exporter(os.environ["KAFKA_EXPORTER"], servers)


def count_requests() -> None:
    from groupkeeper.client.admin import Admin
    from groupkeeper.live.archive import Archive
    from groupkeeper.live.collector import Collector, Schedule

    async def polls(servers: str) -> int:
        await fill(servers, GROUPS)
        watching = Collector("bench", lambda: Admin(servers), Schedule(), Archive(None))
        await watching.poll()
        every = broker.faults.delay(None, 0)
        await watching.poll()
        await watching.close()
        return every.seen

    with BackgroundBroker() as broker:
        print(f"  requests of a poll: {asyncio.run(polls(broker.bootstrap_servers))}")


def main() -> None:
    print(f"{GROUPS:,} groups × {PARTITIONS} ({TOPIC})")
    count_requests()
    try:
        kafka = ApacheKafka()
    except ApacheKafkaUnavailable as why:
        print(f"  no Apache Kafka: {why}")
        return
    kafka.start()
    try:
        asyncio.run(fill(kafka.bootstrap_servers, GROUPS))
        measure(kafka.bootstrap_servers)
    finally:
        kafka.stop()


if __name__ == "__main__":
    main()
