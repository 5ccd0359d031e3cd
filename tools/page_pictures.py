"""Makes the pictures of the pages of `groupkeeper serve` in docs/serve.md, from an embedded broker.

Usage: python tools/page_pictures.py      (part of `make pictures`; needs a Chromium, as tests/browser does)
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from confluent_kafka import Consumer, Producer  # noqa: E402
from tests.browser.opened import WHY_NOT, chromium, opened  # noqa: E402
from tests.web.serving import Served, serving  # noqa: E402

from groupkeeper.client.admin import Admin  # noqa: E402
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition  # noqa: E402
from groupkeeper.testing.background import BackgroundBroker  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Page

PICTURES = ROOT / "docs" / "pictures"
TOKEN = "a-token-for-these-pictures"
_MINUTE_MS = 60_000
_TOPICS = {"orders": 3, "payments": 2, "clicks": 2}
_GROUPS = {  # the topics of each, and how many of 240 records of a partition it has read
    "billing": {"orders": 236, "payments": 240},
    "fraud-check": {"orders": 130, "payments": 140},
    "mail": {"orders": 228},
    "search-index": {"orders": 20, "clicks": 90},
    "warehouse": {"orders": 239, "payments": 238, "clicks": 235},
    "reports": {"clicks": 240},
}
_POLLS = 14
TAKEN = ("group.png", "plan.png", "first-dark.png")


def arrange(servers: str) -> None:
    """Records of the last four hours, one a minute, and groups that have read some of them."""

    async def make() -> None:
        async with Admin(servers) as admin:
            kept = {"retention.ms": str(5 * 60 * _MINUTE_MS)}
            topics = [NewTopic(name, count, 1, configs=kept) for name, count in _TOPICS.items()]
            (await admin.create_topics(topics)).all()
            for group_id, read in _GROUPS.items():
                await commit(admin, group_id, read)

    asyncio.run(make())
    now_ms = time.time_ns() // 1_000_000
    producer = Producer({"bootstrap.servers": servers})
    for name, count in _TOPICS.items():
        times = [now_ms - (240 - number) * _MINUTE_MS for number in range(240)]
        for partition in range(count):
            for time_ms in times:
                producer.produce(name, bytes(100), None, partition, timestamp=time_ms)
    producer.flush()


async def commit(admin: Admin, group_id: str, read: dict[str, int]) -> None:
    offsets = {
        TopicPartition(name, partition): OffsetAndMetadata(min(240, offset + 2 * partition))
        for name, offset in read.items()
        for partition in range(_TOPICS[name])
    }
    (await admin.alter_consumer_group_offsets(group_id, offsets)).all()


def joined(servers: str, group_id: str, topics: list[str], client_ids: list[str]) -> list[Consumer]:
    """Members of a group, each with some partitions."""
    settings = {"bootstrap.servers": servers, "group.id": group_id, "group.protocol": "consumer"}
    consumers = [Consumer({**settings, "enable.auto.commit": False, "client.id": each}) for each in client_ids]
    for consumer in consumers:
        consumer.subscribe(topics)
    while not all(consumer.assignment() for consumer in consumers):
        for consumer in consumers:  # who has all of them gives some up when it polls
            consumer.poll(0.1)
    return consumers


async def live(servers: str) -> None:
    """Some polls in which groups come nearer, so that there is a history."""
    async with Admin(servers) as admin:
        for number in range(_POLLS):
            for group_id in ("fraud-check", "search-index"):
                read = {name: offset + 4 * number for name, offset in _GROUPS[group_id].items()}
                await commit(admin, group_id, read)
            await asyncio.sleep(1.0)


def take(served: Served) -> None:
    """All pictures."""
    base = f"http://{served.address}"
    with chromium() as browser, opened(browser, width=1400, height=860) as (page, _, _):
        log_in(page, base)
        page.goto(f"{base}/group?cluster=prod&group=fraud-check")
        page.screenshot(path=PICTURES / TAKEN[0])
        page.goto(f"{base}/change?cluster=prod&group=fraud-check")
        page.check("#to-ago")
        page.fill("[name=ago]", "1h30m")
        with page.expect_navigation():
            page.click("form.tall button")
        page.screenshot(path=PICTURES / TAKEN[1], full_page=True)
    with chromium() as browser, opened(browser, width=1400, height=620, is_dark=True) as (page, _, _):
        log_in(page, base)
        page.goto(f"{base}/")
        page.screenshot(path=PICTURES / TAKEN[2])


def log_in(page: Page, base: str) -> None:
    page.goto(f"{base}/login")
    page.fill("[name=token]", TOKEN)
    with page.expect_navigation(url=f"{base}/"):
        page.keyboard.press("Enter")


def main() -> int:
    if WHY_NOT:
        print(WHY_NOT, file=sys.stderr)
        return 1
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, BackgroundBroker() as broker:
        folder = Path(name)
        os.environ["GROUPKEEPER_JOURNAL"] = str(folder / "journal.jsonl")
        (folder / "tokens").write_text(f"alice {TOKEN}\n")
        arrange(broker.bootstrap_servers)
        topics = ["orders", "payments"]
        members = joined(broker.bootstrap_servers, "billing", topics, ["billing-1", "billing-2"])
        where = ("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--interval", "1s")
        words = ("--allow-changes", "--token-file", str(folder / "tokens"), "--history", str(folder / "history.sqlite"))
        with serving(*where, *words) as served:
            served.until_ready()
            asyncio.run(live(broker.bootstrap_servers))
            take(served)
        for member in members:
            member.close()
    for name in TAKEN:
        print(f"wrote {(PICTURES / name).relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
