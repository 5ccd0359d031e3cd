"""Pages of `groupkeeper serve` over 10,000 groups × 8 partitions while 200 are open: times, memory, CPU.

One page is open in a real Chromium (`make browser`). The others do what a page does: they hold a stream of events, and
after each poll request their content; some read nothing. BENCH_GROUPS, BENCH_OPEN and BENCH_ROUNDS set other numbers.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from confluent_kafka import Producer
from tests.browser.opened import WHY_NOT, aside, chromium, opened
from tools.apache_kafka import free_port

from bench._filling import GROUP_ID, PARTITIONS, fill
from bench.serve import COMMAND, running, scrape, usage_of, value
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from playwright.sync_api import Browser

GROUPS = int(os.environ.get("BENCH_GROUPS", "10000"))
OPEN = int(os.environ.get("BENCH_OPEN", "200"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "20"))
SLOW = OPEN // 10
INTERVAL_S = 10
CLUSTER = "/cluster?cluster=prod"
TOPIC, RECORDS = "bench-live", 1000
WATCHED = "bench-group-00000"
_NOTE = """() => {
  window.noted = [];
  const lag = () => document.querySelector("tbody tr td:nth-child(3)")?.textContent;
  let last = lag();
  new MutationObserver(() => {
    if (lag() !== last) window.noted.push([last = lag(), Date.now()]);
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""
_FIRST_ROWS = """() => new Promise((done) => {
  new PerformanceObserver((list) => {
    const paint = list.getEntriesByName("first-contentful-paint")[0];
    if (paint) done([paint.startTime, document.querySelectorAll("tbody tr").length]);
  }).observe({ type: "paint", buffered: true });
})"""


class Readers:
    """Open pages, in a thread of their own. `renewed_s`: from an event to the whole new page, of each."""

    def __init__(self, site: str, paths: Sequence[str], slow: int) -> None:
        parts = urlsplit(site)
        self._where = (parts.hostname or "", parts.port or 0)
        self._paths = paths
        self._slow = slow
        self.renewed_s: list[float] = []
        self.streams = 0
        self.refused = 0
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Readers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._read())

    async def _read(self) -> None:
        tasks = [asyncio.create_task(self._page(path)) for path in self._paths]
        slow = ["/events?cluster=prod", "/groups.csv?cluster=prod"]
        tasks += [asyncio.create_task(self._stay(slow[number % len(slow)])) for number in range(self._slow)]
        await self._ended.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self._where)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        if b" 200 " not in await reader.readline():
            self.refused += 1
        return reader, writer

    async def _page(self, path: str) -> None:
        """As live.js does it."""
        reader, _ = await self._ask("/events?cluster=prod")
        self.streams += 1
        while line := await reader.readline():
            if line.startswith(b"event: poll"):
                told = time.perf_counter()
                await asyncio.sleep(random.uniform(0, 0.2))
                page, writer = await self._ask(path)
                await page.read()
                writer.close()
                self.renewed_s.append(time.perf_counter() - told)
        self.streams -= 1

    async def _stay(self, path: str) -> None:
        """Request something and read none of it, again whenever the server has hung up."""
        loop = asyncio.get_running_loop()
        while True:
            with socket.socket() as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.setblocking(False)
                await loop.sock_connect(connection, self._where)
                await loop.sock_sendall(connection, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                await asyncio.sleep(45)


def paths() -> list[str]:
    """What is open: lists, the fleet, and pages of groups."""
    lists = ["&sort=group", "&sort=lag", "&sort=time_lag", "&q=99"]
    found = [CLUSTER + lists[number % len(lists)] for number in range(OPEN // 2 - SLOW)]
    found += ["/"] * (OPEN // 20)
    ids = (GROUP_ID.format(number * 7 % GROUPS) for number in range(OPEN - SLOW - len(found)))
    return found + [f"/group?cluster=prod&group={group_id}" for group_id in ids]


@contextmanager
def broker() -> Iterator[str]:
    with TemporaryDirectory() as folder:
        command = [COMMAND, "broker", "--port", "0", "--data", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            try:
                assert process.stdout is not None
                yield process.stdout.readline().split()[-1]
            finally:
                process.terminate()


def commit(servers: str, offset: int) -> None:
    async def make() -> None:
        async with Admin(servers) as admin:
            wanted = {TopicPartition(TOPIC, 0): OffsetAndMetadata(offset)}
            (await admin.alter_consumer_group_offsets(WATCHED, wanted)).all()

    aside(lambda: asyncio.run(make()))


def arrange(servers: str) -> None:
    async def make() -> None:
        await fill(servers, GROUPS)
        async with Admin(servers) as admin:
            (await admin.create_topics([NewTopic(TOPIC, 1, 1)])).all()

    asyncio.run(make())
    producer = Producer({"bootstrap.servers": servers})
    for _ in range(RECORDS):
        producer.produce(TOPIC, b"x", partition=0)
    producer.flush()
    commit(servers, 0)


def spread(times_s: Sequence[float]) -> str:
    cuts = statistics.quantiles(times_s, n=20, method="inclusive")
    return f"p50 {statistics.median(times_s):.2f} s, p95 {cuts[18]:.2f} s, at most {max(times_s):.2f} s"


def first_rows(browser: Browser, site: str) -> list[float]:
    """From the request of a list to its rows on the screen; each has an address of its own, so that none is kept."""
    found = []
    for number in range(ROUNDS):
        with opened(browser) as (page, _, _):
            page.goto(f"{site}{CLUSTER}&sort=lag&round={number}")
            took_ms, rows = page.evaluate(_FIRST_ROWS)
            assert rows == min(100, GROUPS), rows
            found.append(took_ms / 1000)
    return found


def changes(browser: Browser, servers: str, site: str) -> list[float]:
    """From the end of the poll that found a commit to when the page showed it."""
    found = []
    with opened(browser) as (page, _, _):
        page.goto(f"{site}{CLUSTER}&sort=group")
        page.evaluate(_NOTE)
        for offset in range(1, ROUNDS + 1):
            commit(servers, offset)
            while not (noted := page.evaluate("window.noted")) or noted[-1][0] != f"{RECORDS - offset:,}":
                page.wait_for_timeout(100)
            page.wait_for_timeout(3000)  # until the metrics are of that poll, too
            _, body = scrape(f"{site}/metrics")
            began_s = value(body, "groupkeeper_collector_succeeded_timestamp_seconds")
            ended_s = began_s + value(body, "groupkeeper_collector_poll_seconds")
            found.append(noted[-1][1] / 1000 - ended_s)
    return found


def measure(servers: str, folder: Path) -> None:
    site = f"http://127.0.0.1:{free_port()}"
    command = [COMMAND, "serve", "--bootstrap-server", f"prod={servers}", "--port", site.rpartition(":")[2],
               "--interval", f"{INTERVAL_S}s", "--history", str(folder / "history.sqlite")]  # fmt: skip
    with running(command, f"{site}/metrics", lambda body: b"groupkeeper_group_lag{" in body) as pid:
        alone = per_minute(pid)
        with Readers(site, paths(), SLOW) as readers, chromium() as browser:
            together = per_minute(pid)
            print(f"  {readers.streams} pages are live, and {SLOW} readers read nothing", flush=True)
            print(f"  a change on the page, after its poll: {spread(changes(browser, servers, site))}", flush=True)
            print(f"  new content of the other pages, after an event: {spread(readers.renewed_s)}", flush=True)
            print(f"  the first rows of a list: {spread(first_rows(browser, site))}", flush=True)
            usage = usage_of(pid)
            print(f"  refused: {readers.refused}; {readers.streams} pages are live at the end", flush=True)
            print(f"  the end, from SIGTERM, with all of them open: {end(pid):.1f} s", flush=True)
        print(f"  CPU s a minute: {alone:.1f} without pages, {together:.1f} with them; at most {usage.most_mb:.0f} MB")


def end(pid: int) -> float:
    """Seconds until the server has ended."""
    os.kill(pid, signal.SIGTERM)
    began = time.perf_counter()
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.02)
    return time.perf_counter() - began


def per_minute(pid: int) -> float:
    """CPU seconds in a minute, after a poll to warm up."""
    time.sleep(INTERVAL_S)
    before = usage_of(pid).cpu_s
    time.sleep(60)
    return usage_of(pid).cpu_s - before


def main() -> None:
    if WHY_NOT:
        print(f"  {WHY_NOT}")
        return
    print(f"{GROUPS:,} groups × {PARTITIONS}, {OPEN} open pages, a poll every {INTERVAL_S} s")
    with broker() as servers, TemporaryDirectory() as folder:
        arrange(servers)
        measure(servers, Path(folder))


if __name__ == "__main__":
    main()
