"""`groupkeeper serve` on 10,000 groups × 8 partitions: CPU and memory, polls, scrapes, requests; and others beside it.

Beside it: polling with kafka-python, and the exporters whose programs $KAFKA_EXPORTER, $KMINION and $BURROW name, one
after the other on one Apache Kafka, which counts the requests. BENCH_GROUPS sets another number of groups,
BENCH_MINUTES how long is measured.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tools.apache_kafka import ApacheKafkaUnavailable, free_port

from bench._exporters import OTHERS, Command, CountingKafka
from bench._filling import PARTITIONS, TOPIC, fill
from bench._measure import cost_of
from bench.commands import KAFKA_PYTHON
from groupkeeper.testing.background import BackgroundBroker

GROUPS = int(os.environ.get("BENCH_GROUPS", "10000"))
MINUTES = float(os.environ.get("BENCH_MINUTES", "1"))
SCRAPES = 20
PATIENCE_S = 300.0
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


class TooSlow(Exception):
    """A program that told nothing within PATIENCE_S."""


@contextmanager
def running(
    command: list[str],
    url: str,
    is_ready: Callable[[bytes], bool],
    environment: Mapping[str, str] = {},
    folder: Path | None = None,
) -> Iterator[int]:
    whole = {**os.environ, **environment}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=whole, cwd=folder
    ) as process:
        try:
            deadline = time.monotonic() + PATIENCE_S
            while True:
                try:
                    if is_ready(scrape(url)[1]):
                        break
                except OSError:
                    pass
                if process.poll() is not None or time.monotonic() > deadline:
                    raise TooSlow(f"ended with {process.poll()}, or told nothing for {PATIENCE_S:.0f} s")
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


class Watched(NamedTuple):
    """What a program took a minute, and how its scrapes were. `requests`: at the broker, a minute."""

    cpu_s: float
    now_mb: float
    most_mb: float
    requests: float
    scrapes_s: list[float]
    body: bytes

    def text(self) -> str:
        series = sum(not line.startswith(b"#") for line in self.body.splitlines())
        return (
            f"{self.cpu_s:.2f} CPU s a minute, {self.now_mb:.0f} MB, at most {self.most_mb:.0f} MB; "
            f"{self.requests:,.0f} requests a minute; {series:,} series, {len(self.body) / 1e6:.1f} MB; a scrape "
            f"{statistics.median(self.scrapes_s):.3f} s (at most {max(self.scrapes_s):.3f})"
        )


def watch(kafka: CountingKafka, pid: int, url: str) -> Watched:
    """As Prometheus does it: a scrape each INTERVAL_S."""
    requests, before, began = kafka.requests(), usage_of(pid), time.perf_counter()
    times: list[float] = []
    body = b""
    while time.perf_counter() - began < 60 * MINUTES:
        took_s, body = scrape(url, Accept_Encoding="gzip")
        times.append(took_s)
        time.sleep(max(0.0, INTERVAL_S - took_s))
    after, took_min = usage_of(pid), (time.perf_counter() - began) / 60
    made = kafka.requests() - requests
    cpu_s = (after.cpu_s - before.cpu_s) / took_min
    text = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
    return Watched(cpu_s, after.now_mb, after.most_mb, made / took_min, times, text)


def measure_ours(kafka: CountingKafka, *words: str) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/metrics"
    history = Path(f"/tmp/bench-serve-{port}.sqlite")
    command = [COMMAND, "serve", "--bootstrap-server", kafka.bootstrap_servers, "--port", str(port), "--interval",
               f"{INTERVAL_S}s", "--history", str(history), *words]  # fmt: skip
    with running(command, url, lambda body: b"groupkeeper_group_lag{" in body or b"kminion" in body) as pid:
        print(f"  serve {' '.join(words)}: {(watched := watch(kafka, pid, url)).text()}", flush=True)
        plain = [scrape(url)[0] for _ in range(SCRAPES)]
        site = url.removesuffix("/metrics")
        pages = {
            path: max(scrape(site + path)[0] for _ in range(SCRAPES)) for path in ("/", "/cluster?cluster=default")
        }
        print(
            f"    a poll {value(watched.body, 'groupkeeper_collector_poll_seconds'):.2f} s; a scrape without gzip "
            f"{statistics.median(plain):.3f} s (at most {max(plain):.3f}); "
            f"pages: {', '.join(f'{path} {took_s:.3f} s' for path, took_s in pages.items())} at most; "
            f"at most {usage_of(pid).most_mb:.0f} MB with these; "
            f"history {sum(path.stat().st_size for path in history.parent.glob(f'{history.name}*')) / 1e6:.1f} MB",
            flush=True,
        )
    for path in history.parent.glob(f"{history.name}*"):
        path.unlink()


def measure_other(kafka: CountingKafka, name: str, command: Command, is_ready: bytes) -> None:
    """`is_ready`: is in what it tells once it has looked at the groups."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/metrics"
    with TemporaryDirectory() as folder:
        words, environment = command(kafka.bootstrap_servers, port, Path(folder))
        with running(words, url, lambda body: is_ready in body, environment, Path(folder)) as pid:
            print(f"  {name}: {watch(kafka, pid, url).text()}", flush=True)


def measure(kafka: CountingKafka) -> None:
    measure_ours(kafka)
    measure_ours(kafka, "--series", "partitions")
    cost = cost_of([sys.executable, "-c", KAFKA_PYTHON, kafka.bootstrap_servers])
    polls = 60 / INTERVAL_S
    print(f"  polling with kafka-python as often: {cost.cpu_s * polls:.2f} CPU s a minute, {cost.memory_mb:.0f} MB")
    for variable, others in OTHERS.items():
        for name, command, is_ready in others if variable in os.environ else ():
            try:
                measure_other(kafka, name, command, is_ready)
            except TooSlow as why:
                print(f"  {name}: {why}", flush=True)


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
        kafka = CountingKafka()
    except ApacheKafkaUnavailable as why:
        print(f"  no Apache Kafka: {why}")
        return
    kafka.start()
    try:
        asyncio.run(fill(kafka.bootstrap_servers, GROUPS))
        measure(kafka)
    finally:
        kafka.stop()


if __name__ == "__main__":
    main()
