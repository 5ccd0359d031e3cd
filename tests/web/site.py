"""The application on a cluster, without a server: for pages that change something, and for the API."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

from tests.live.stage import collector
from tests.web.asking import Answer, Browser

from groupkeeper.client.admin import Admin
from groupkeeper.live.archive import Archive
from groupkeeper.live.cluster_poll import WantedGroups
from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.operations.plans.journal import ChangeJournal, Journal
from groupkeeper.operations.selection import ALL, Choice
from groupkeeper.shell import way_of_servers
from groupkeeper.testing.background import BackgroundBroker
from groupkeeper.web.access.people import Access, PageTokens
from groupkeeper.web.access.roles import Roles
from groupkeeper.web.app import Site as Served
from groupkeeper.web.app import application
from groupkeeper.web.changes.desk import Desk
from groupkeeper.web.changes.record import ChangeRecord
from groupkeeper.web.exporter import Choices, Exporter

ALICE, BOB, EVE = (f"token-of-{name}-0123456789" for name in ("alice", "bob", "eve"))
TIMEOUT_MS = 3000
TOKENS = PageTokens({ALICE: "alice", BOB: "bob", EVE: "eve"})
GRANTS = [
    {"users": ["alice"], "may": "change"},
    {"users": ["bob"], "may": "view", "groups": ["b*"]},
    {"users": ["bob"], "may": "change", "clusters": ["prod"], "groups": ["billing"]},
]


class Site:
    """The application on clusters, each polled once. `cluster`: the name of the first."""

    def __init__(
        self, clusters: Mapping[str, str], access: Access, journal: ChangeJournal, *, changes: bool, watched: Choice
    ) -> None:
        self.cluster, self.servers = next(iter(clusters.items()))
        self.journal = journal
        self.watched = {name: collector(servers, WantedGroups(watched)) for name, servers in clusters.items()}
        self.told: list[str] = []
        openers = {name: partial(Admin, servers, default_timeout_ms=TIMEOUT_MS) for name, servers in clusters.items()}
        ways = {name: way_of_servers(servers) for name, servers in clusters.items()}
        desk = Desk(openers, journal, self.told.append, watched, ways) if changes else None
        self.exporter = Exporter(Choices(), lambda: iter(()))
        self.record = ChangeRecord(journal)
        self.served = Served(self.exporter, self.snapshots, Archive(None), access, desk, self.record, ways=ways)
        self.app = application(self.served)

    def snapshots(self) -> list[ClusterSnapshot]:
        return [watched.snapshot._replace(cluster=name) for name, watched in self.watched.items()]

    async def poll(self) -> None:
        for watched in self.watched.values():
            self.exporter.take(await watched.poll())
            await watched.close()

    async def of(self, token: str) -> Browser:
        browser = Browser(self.app)
        assert (await browser.log_in(token)).status == 200
        return browser

    async def plan(self, browser: Browser, group: str = "search", **fields: str | list[str]) -> Answer:
        of = {"cluster": self.cluster, "group": group}
        seal = await browser.seal(f"/change?{urlencode(of)}")
        return await browser.post("/plan", {"seal": seal, **of, **fields})

    async def committed(self, group: str) -> Mapping[str, int]:
        async with Admin(self.servers) as admin:
            found = (await admin.list_consumer_group_offsets({group: None})).result(group).done
        return {f"{tp.topic}-{tp.partition}": one.offset for tp, one in found.items() if one is not None}


async def site_of(
    broker: BackgroundBroker,
    folder: Path,
    access: Access | None = None,
    *,
    changes: bool = True,
    more: Mapping[str, BackgroundBroker] = {},
    watched: Choice = ALL,
    journal: ChangeJournal | None = None,
    reads_journal: bool = True,
    cluster: str = "prod",
) -> Site:
    access = access or Access(Roles(None, changes=changes), TOKENS, None, is_open=False)
    servers = {name: each.bootstrap_servers for name, each in {cluster: broker, **more}.items()}
    site = Site(servers, access, journal or Journal(folder / "journal.jsonl"), changes=changes, watched=watched)
    await site.poll()
    if reads_journal:
        await site.record.refresh()
    return site


async def apply(browser: Browser, page: Answer) -> Answer:
    return await browser.post("/plan/apply", {"seal": page.field("seal"), "id": page.parameter("id")})
