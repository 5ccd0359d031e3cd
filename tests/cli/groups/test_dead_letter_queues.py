"""The dead-letter queue of a share group, as `groups describe` and `serve` show it."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.live.stage import collector
from tests.times_and_transactions import producer_of, send

from groupkeeper import SyncAdmin
from groupkeeper.client.admin.resources.types import ConfigResource
from groupkeeper.client.admin.types import NewTopic, TopicPartition
from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.testing.background import BackgroundBroker
from groupkeeper.web.exporter import Choices, Exporter
from groupkeeper.web.exposition import Format
from groupkeeper.web.pages.group import group_page

QUEUES = {"used": "dlq.used", "new": "dlq.new", "closed": "jobs", "without": ""}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with BackgroundBroker() as broker:
        _prepare(broker.bootstrap_servers)
        send(producer_of(broker.bootstrap_servers), "dlq.used", [1_700_000_000_000] * 3)
        yield broker.bootstrap_servers


def _prepare(servers: str) -> None:
    with SyncAdmin(servers) as admin:
        enabled = {"errors.deadletterqueue.group.enable": "true"}
        admin.create_topics([NewTopic("jobs", 2), NewTopic("dlq.used", 2, configs=enabled)]).all()
        for group_id, queue in QUEUES.items():
            admin.alter_share_group_offsets(group_id, {TopicPartition("jobs", 0): 0}).all()
            named = {"errors.deadletterqueue.topic.name": queue}
            admin.alter_configs({ConfigResource.group(group_id): named}).all()


def test_describe(run: Any) -> None:
    words = ("groups", "describe", "--all-groups")
    status, report = run(*words, "--view", "state")
    assert status == 0
    found = {row["group"]: (row["dead_letter_queue"], row["dead_letters"]) for row in report["groups"]}
    assert found == {"closed": ("jobs", 0), "new": ("dlq.new", 0), "used": ("dlq.used", 3), "without": (None, None)}
    closed = "topic jobs, which does not allow it: errors.deadletterqueue.group.enable is false"
    said = [
        f"the dead-letter queue of share group closed is {closed}",
        "the dead-letter queue of share group new is topic dlq.new, which does not exist yet",
        "the dead-letter queue of share group used is topic dlq.used (3 records)",
    ]
    assert [note for note in report["notes"] if "dead-letter" in note] == said
    status, report = run(*words)
    assert (status, [note for note in report["notes"] if "dead-letter" in note]) == (0, said)


@pytest.fixture(scope="module")
def snapshot(servers: str) -> ClusterSnapshot:
    async def look() -> ClusterSnapshot:
        watching = collector(servers)
        found = await watching.poll()
        await watching.close()
        return found

    return asyncio.run(look())


def test_serve(snapshot: ClusterSnapshot) -> None:
    page = group_page(snapshot, snapshot.groups["used"], [], [], 0)
    assert "dlq.used (3 records)" in page
    assert "dead-letter queue" not in group_page(snapshot, snapshot.groups["without"], [], [], 0)
    exporter = Exporter(Choices())
    exporter.take(snapshot)
    text = b"".join(exporter.text(Format.PROMETHEUS)).decode()
    assert 'groupkeeper_share_group_dead_letters{cluster="prod",group="used",queue="dlq.used"} 3' in text
    assert 'groupkeeper_share_group_dead_letters{cluster="prod",group="without"' not in text


def test_check(run: Any) -> None:
    assert run("check", "--max-dead-letters", "3")[0] == 0
    status, report = run("check", "--max-dead-letters", "2")
    assert status != 0
    assert [(one["group"], one["measure"], one["value"], one["limit"]) for one in report["checks"]] == [
        ("used", "dead_letters", 3, 2)
    ]
