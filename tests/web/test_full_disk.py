"""A disk that takes nothing: the server goes on, says so wherever one looks, and writes again once there is room."""

import asyncio
import http.client
import re
import resource
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.live.stage import arrange, commit
from tests.unit.live.views import row, snapshot, view
from tests.web.asking import Browser
from tests.web.serving import Served, serving

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.live.archive import Archive
from groupkeeper.live.cluster_poll import Polled
from groupkeeper.live.history import History
from groupkeeper.testing.background import BackgroundBroker
from groupkeeper.web.access.people import Access
from groupkeeper.web.access.roles import Roles
from groupkeeper.web.app import Site, application
from groupkeeper.web.exporter import Choices, Exporter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of other processes are set as Linux does it")

TOKEN = "a-token-that-is-long-enough"
BEARER = f"Bearer {TOKEN}"
GROUP, CHANGE = (f"/{page}?cluster=prod&group=search" for page in ("group", "change"))
SAID = "the history cannot be written"


@contextmanager
def no_room(served: Served) -> Iterator[None]:
    """The operating system takes no byte of the server for a file, as a full disk doesn't."""
    before = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, before)


async def committed(servers: str) -> int | None:
    async with Admin(servers) as admin:
        found = (await admin.list_consumer_group_offsets({"search": None})).result("search").done
        one = found[TopicPartition("orders", 0)]
        return None if one is None else one.offset


async def commit_6(servers: str) -> None:
    async with Admin(servers) as admin:
        await commit(admin, "search", "orders", 6)


class Alice:
    """Asks with her token."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def sees(self, path: str) -> str:
        return self._served.get(path, Authorization=BEARER).text

    def waits(self, path: str, text: str, *, is_there: bool = True) -> None:
        self._served.until(lambda found: (text in found) is is_there, path, Authorization=BEARER)

    def metric(self, name: str) -> float:
        found = re.search(rf"^{name} (\S+)$", self.sees("/metrics"), re.MULTILINE)
        assert found is not None
        return float(found[1])

    def seal(self, path: str) -> str:
        found = re.search(r'name="seal" value="([^"]*)"', self.sees(path))
        assert found is not None
        return found[1]

    def plan(self, to: str) -> dict[str, str]:
        """The form that applies a new plan."""
        form = {"seal": self.seal(CHANGE), "cluster": "prod", "group": "search", "deed": "reset", "scope": "all"}
        status, path, said = self.sends("/plan", {**form, "to": to})
        assert status == 303, said
        return {"seal": self.seal(path), "id": path.partition("id=")[2]}

    def sends(self, path: str, form: dict[str, str]) -> tuple[int, str, str]:
        """The status of what a form gets, where it leads to, and its text."""
        connection = http.client.HTTPConnection("127.0.0.1", self._served.port, timeout=20)
        headers = {"Authorization": BEARER, "Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", path, urlencode(form), headers)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Location", ""), answer.read().decode()


def test_history_and_journal_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tokens").write_text(f"alice {TOKEN}\n")
    history, journal = tmp_path / "history.sqlite", tmp_path / "journal.jsonl"
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", str(journal))
    words = ("--interval", "100ms", "--history", str(history), "--allow-changes", "--token-file", f"{tmp_path}/tokens")
    with BackgroundBroker() as broker:
        servers = broker.bootstrap_servers
        arrange(servers)
        with serving("--bootstrap-server", f"prod={servers}", *words) as served:
            served.until_ready()
            alice = Alice(served)
            assert alice.metric("groupkeeper_history_up") == 1
            planned = alice.plan("latest")
            with no_room(served):
                alice.waits("/", SAID)
                assert SAID in alice.sees(GROUP)
                assert alice.metric("groupkeeper_history_up") == 0
                ready = served.get("/readyz", Authorization=BEARER)
                assert (ready.status, str(history) in ready.text) == (200, True)
                assert served.get("/readyz").text == "ready\n"  # a path is not for everybody
                # What it is for goes on: commits are seen, and nothing is changed that could not be noted.
                status, _, said = alice.sends("/plan/apply", planned)
                assert (status, "nothing was changed, as the journal cannot be written" in said) == (503, True)
                assert asyncio.run(committed(servers)) == 0
                asyncio.run(commit_6(servers))
                alice.waits(GROUP, '<td class="n">6</td>')
                assert alice.metric("groupkeeper_history_failed_polls_total") > 1
            alice.waits("/", SAID, is_there=False)
            assert alice.metric("groupkeeper_history_up") == 1
            assert "history" not in alice.sees("/readyz")
            assert alice.sends("/plan/apply", alice.plan("earliest"))[0] == 303
            assert asyncio.run(committed(servers)) == 0
            assert journal.read_text().count('"event":"change"') == 1
            alice.waits(GROUP, '<td class="n">8</td>')
            served.process.terminate()
            assert served.process.stderr is not None
            log = served.process.stderr.read()
    assert "Traceback" not in log
    found = re.findall(r"the history(?:: | can be written again)", log)
    assert found == ["the history: ", "the history can be written again"]
    with sqlite3.connect(history) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert file.execute("SELECT count(*) FROM samples").fetchone()[0] >= 3


async def test_what_fires_is_kept_once_there_is_room(tmp_path: Path) -> None:
    history = History(tmp_path / "history.sqlite")
    archive = Archive(history)
    history._file.execute("PRAGMA query_only = ON")
    await archive.keep({"alerts": "old"})
    await archive.keep({"alerts": "new"})
    assert "readonly" in str(archive.problem)
    assert history.kept("alerts") == ""
    history._file.execute("PRAGMA query_only = OFF")
    await archive.add(Polled(snapshot(), []), 1)
    assert archive.problem is None
    assert history.kept("alerts") == "new"
    archive.close()


async def test_a_past_that_cannot_be_read_is_said_to_be_missing(tmp_path: Path) -> None:
    history = History(tmp_path / "history.sqlite")
    access = Access(Roles(None, changes=False), None, None, is_open=True)
    snapshots = [snapshot(view("search", [row("t", 0, 1)]))]
    site = Site(Exporter(Choices(), lambda: iter(())), lambda: snapshots, Archive(history), access)
    anybody = Browser(application(site))
    history.add(snapshots[0], [], 1)
    assert "cannot be read" not in (await anybody.get(GROUP)).words
    history.close()
    page = await anybody.get(GROUP)
    assert (page.status, "The history cannot be read now" in page.words) == (200, True)
