"""Webhooks: what they are sent, and that it is brought to them in spite of errors."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.live.stage import arrange
from tests.web.serving import serving

from groupkeeper.live import webhooks
from groupkeeper.live.alerts import Key, Kind, Notice
from groupkeeper.live.rules import Template, Webhook
from groupkeeper.live.webhooks import Courier, request_of
from groupkeeper.testing.background import BackgroundBroker

NOTICE = Notice(
    Kind.FIRING,
    Key("behind", "prod", "orders <!channel> `x`"),
    "critical",
    "team & co",
    1_700_000_000_000,
    1_700_000_060_500,
    ("lag 5 offsets, limit 1",),
    "groupkeeper groups describe --context prod x",
    ("chat",),
)


class Receiver:
    """A server that takes what webhooks are sent."""

    def __init__(self) -> None:
        self.got: list[tuple[str, Any]] = []
        self.answers: list[int] = []  # what it answers next; afterwards 200
        self.news = threading.Condition()

    def until(self, is_there: Callable[[list[tuple[str, Any]]], bool]) -> list[tuple[str, Any]]:
        with self.news:
            assert self.news.wait_for(lambda: is_there(self.got), 20), self.got
            return list(self.got)


@contextmanager
def receiving() -> Iterator[tuple[Receiver, str]]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = receiver.answers.pop(0) if receiver.answers else 200
            with receiver.news:
                receiver.got.append((self.path, content))
                receiver.news.notify_all()
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield receiver, f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def sent(template: Template, notice: Notice = NOTICE) -> tuple[str, Any]:
    return request_of(notice, Webhook("chat", "https://chat.example", template, 60_000))


def test_slack_gets_no_markup_from_names() -> None:
    _, document = sent(Template.SLACK)
    [block] = document["blocks"]
    assert block["text"]["text"].splitlines() == [
        "*Critical: prod: orders &lt;!channel&gt; `x`: behind*",
        "lag 5 offsets, limit 1",
        "Owner: team &amp; co",
        "`groupkeeper groups describe --context prod x`",
        "since 2023-11-14T22:13:20.000Z",
    ]
    assert "<" not in json.dumps(document)
    assert len(sent(Template.SLACK, NOTICE._replace(texts=("x" * 9999,)))[1]["blocks"][0]["text"]["text"]) <= 3000


def test_alertmanager_gets_labels_that_stay_the_same() -> None:
    url, [firing] = sent(Template.ALERTMANAGER)
    _, [resolved] = sent(Template.ALERTMANAGER, NOTICE._replace(kind=Kind.RESOLVED, texts=("over",), command=""))
    assert url == "https://chat.example/api/v2/alerts"
    assert firing["labels"] == resolved["labels"]
    assert firing["labels"]["alertname"] == "behind"
    assert firing["startsAt"] == "2023-11-14T22:13:20.000Z"
    assert firing["endsAt"] == "2023-11-14T22:19:20.500Z"  # five repeats later
    assert resolved["endsAt"] == "2023-11-14T22:14:20.500Z"
    assert firing["annotations"]["command"] == NOTICE.command


def test_json_has_everything() -> None:
    _, document = sent(Template.JSON)
    assert document == {
        "schema": "alert/1",
        "status": "firing",
        "rule": "behind",
        "cluster": "prod",
        "group": "orders <!channel> `x`",
        "severity": "critical",
        "owner": "team & co",
        "since": "2023-11-14T22:13:20.000Z",
        "at": "2023-11-14T22:14:20.500Z",
        "texts": ["lag 5 offsets, limit 1"],
        "command": "groupkeeper groups describe --context prod x",
        "repeated": False,
    }


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(webhooks, "_LONGEST_PAUSE_S", 0.02)


@pytest.mark.usefixtures("quick")
async def test_what_is_not_taken_is_brought_again_and_what_never_will_be_is_not() -> None:
    told: list[str] = []
    with receiving() as (receiver, address):
        hooks = {
            "chat": Webhook("chat", f"{address}/token", Template.JSON, None),
            "dead": Webhook("dead", "http://127.0.0.1:1/token", Template.JSON, None),
        }
        receiver.answers = [500, 503, 429, 200, 404]
        courier = Courier(hooks, told.append)
        running = asyncio.create_task(courier.run())
        courier.take(NOTICE._replace(to=("chat", "dead")))  # who is dead holds nobody up
        courier.take(NOTICE._replace(at_ms=2))
        courier.take(NOTICE._replace(at_ms=3))
        async with asyncio.timeout(20):
            while courier.counts.total() < 4:  # noqa: ASYNC110 a courier tells nobody
                await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert len(receiver.got) == 6
    assert dict(courier.counts) == {("chat", "sent"): 2, ("chat", "failed"): 1, ("dead", "failed"): 1}
    assert "webhook chat: HTTP status 404; given up" in told
    assert not any("token" in text for text in told)


async def test_too_many_that_wait_lose_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "_MOST_WAITING", 3)
    courier = Courier({"chat": Webhook("chat", "http://127.0.0.1:1", Template.JSON, None)}, lambda _: None)
    for number in range(5):
        courier.take(NOTICE._replace(at_ms=number))
    assert [courier._waiting["chat"].get_nowait().at_ms for _ in range(3)] == [2, 3, 4]
    assert courier.counts["chat", "dropped"] == 2


def test_a_server_with_rules_tells_webhooks(tmp_path: Path) -> None:
    with receiving() as (receiver, address), BackgroundBroker() as broker:
        arrange(broker.bootstrap_servers)
        rules = tmp_path / "rules.toml"
        rules.write_text(
            '[[rule]]\nname = "behind"\nmax_lag = 7\n'
            '[[rule]]\nname = "down"\ncluster_unreachable = true\n'
            f'[webhook.chat]\nurl = "{address}/chat"\n'
            f'[webhook.oncall]\nurl = "{address}"\ntemplate = "alertmanager"\n'
        )
        words = ("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--interval", "100ms", "--timeout", "400ms")
        history = ("--history", str(tmp_path / "history.sqlite"))
        with serving(*words, *history, "--rules", str(rules)) as served:
            got = receiver.until(lambda got: len(got) >= 2)
            assert {path for path, _ in got} == {"/chat", "/api/v2/alerts"}
            assert next(content for path, content in got if path == "/chat")["group"] == "search"
            served.until(lambda text: 'groupkeeper_alert_firing{rule="behind"' in text)
            served.process.terminate()
            assert served.process.wait(10) == 0
        with serving(*words, *history, "--rules", str(rules)) as served:
            served.until(lambda text: 'groupkeeper_alert_firing{rule="behind"' in text)
            broker.stop()
            got = receiver.until(lambda got: len(got) >= 4)  # what was told before the restart is not told again
        told = [(content["rule"], content["status"]) for path, content in got if path == "/chat"]
        assert told == [("behind", "firing"), ("down", "firing")]


def test_bad_rules_are_refused_at_the_start(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from groupkeeper.cli.main import main

    path = tmp_path / "rules.toml"
    path.write_text("[[rule]]\n")
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--bootstrap-server", "h:1", "--rules", str(path)])
    assert ended.value.code == 2
    assert "rule 1: name is missing" in capfd.readouterr().err
