"""Pages and the API with a journal in a topic: its cluster goes away, and comes back."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.web.asking import Browser
from tests.web.site import ALICE, Site, apply, site_of

from groupkeeper.client.admin import Admin
from groupkeeper.operations.plans.topic_journal import TopicJournal
from groupkeeper.testing.background import BackgroundBroker

ATTEMPT_MS = 3000
AT_ONCE_S = 2.0
"""Less than one attempt to read the journal takes."""


def journal_at(servers: str) -> TopicJournal:
    return TopicJournal(f"kafka://{servers}/journal", lambda: Admin(servers, default_timeout_ms=ATTEMPT_MS))


@asynccontextmanager
async def reading(site: Site) -> AsyncIterator[None]:
    task = asyncio.create_task(site.record.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_last_known_changes_are_shown_while_the_journal_cannot_be_read(
    broker: BackgroundBroker, tmp_path: Path
) -> None:
    with BackgroundBroker(directory=tmp_path / "data") as other:
        port = int(other.bootstrap_servers.rpartition(":")[2])
        site = await site_of(broker, tmp_path, journal=journal_at(other.bootstrap_servers))
        alice = await site.of(ALICE)
        done = await apply(alice, await site.plan(alice, deed="reset", to="latest", scope="all"))
        change = done.field("change")
        assert f"/journal/change?id={change}" in (await alice.get("/journal")).text
        assert (await alice.get(f"/journal/change?id={change}")).status == 200
    async with reading(site):
        async with asyncio.timeout(30):
            while "not read since" not in (await alice.get("/journal")).text:
                pass
        assert "journal: not read since" in (await alice.get("/readyz")).text
        assert "Journal: not read since" in (await alice.get("/")).words
        programs = Browser(site.app, headers={"authorization": f"Bearer {ALICE}"})
        async with asyncio.timeout(AT_ONCE_S):  # the next attempt to read it is under way, or waited for
            for page in ("/journal", "/group?cluster=prod&group=search"):
                shown = (await alice.get(page)).text
                assert (f"/journal/change?id={change}" in shown, "journal: not read since" in shown) == (True, True)
            assert (await alice.get(f"/journal/change?id={change}")).status == 503
            told = json.loads((await programs.get("/api/v1/changes")).body)
        assert [each["id"] for each in told["changes"]] == [change]
        assert told["problem"].startswith("journal: not read since ")
        planned = await site.plan(alice, "billing", deed="reset", to="latest", scope="all")
        refused = await apply(alice, planned)
        assert (refused.status, "nothing was changed, as the journal cannot be written" in refused.words) == (503, True)
        assert "Nothing is changed yet" in (await alice.get(f"/plan?id={planned.parameter('id')}")).words
        with BackgroundBroker(directory=tmp_path / "data", port=port):
            async with asyncio.timeout(30):
                await site.record.refresh()
                while site.record.problem:
                    await site.record.refresh()
            assert (await alice.get(f"/journal/change?id={change}")).status == 200
            assert "Journal: not read" not in (await alice.get("/")).words


async def test_no_request_waits_for_brokers_that_do_not_answer(broker: BackgroundBroker, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        site = await site_of(broker, tmp_path, reads_journal=False, journal=journal_at(f"127.0.0.1:{port}"))
        alice = await site.of(ALICE)
        async with reading(site), asyncio.timeout(AT_ONCE_S):
            pages = await asyncio.gather(*(alice.get("/journal") for _ in range(5)))
            pages.append(await alice.get("/journal/change?id=one"))
        assert all("journal: not read yet" in each.text for each in pages)
