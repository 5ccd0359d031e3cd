"""Webhooks: what they are sent, and that it is brought to them in spite of errors."""

import asyncio
import json
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from email import message_from_string
from email.policy import default
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

import pytest
from tests.live.stage import arrange
from tests.patience import becomes
from tests.web.serving import serving
from tests.web_server import Asked, Reply, answering

from groupkeeper.live import courier as module
from groupkeeper.live import outbox
from groupkeeper.live.alerts import AlertKind, Key, Notice
from groupkeeper.live.courier import Courier, post
from groupkeeper.live.outbox import NotSent
from groupkeeper.live.rules import Template, Webhook
from groupkeeper.live.webhooks import request_of
from groupkeeper.testing.background import BackgroundBroker

NOTICE = Notice(
    AlertKind.FIRING,
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
        self.by_group: dict[str, list[int]] = {}  # what it answers next; afterwards 200
        self.delays_s: dict[str, float] = {}
        self.retry_after: str | None = None
        self.at_once = self.most_at_once = 0
        self.news = threading.Condition()

    def until(self, is_there: Callable[[list[tuple[str, Any]]], bool]) -> list[tuple[str, Any]]:
        with self.news:
            assert self.news.wait_for(lambda: is_there(self.got), 20), self.got
            return list(self.got)


@contextmanager
def receiving() -> Iterator[tuple[Receiver, str]]:
    receiver = Receiver()

    def reply_to(asked: Asked) -> Reply:
        content = json.loads(asked.body)
        group: Any = content.get("group") if isinstance(content, dict) else None
        answers = receiver.by_group.get(group, [])
        status = answers.pop(0) if answers else 200
        with receiver.news:
            receiver.got.append((asked.path, content))
            receiver.at_once += 1
            receiver.most_at_once = max(receiver.most_at_once, receiver.at_once)
            receiver.news.notify_all()
        time.sleep(receiver.delays_s.get(group, 0.002))
        with receiver.news:
            receiver.at_once -= 1
        headers = {"Location": "/elsewhere"} if status == 301 else {}
        if receiver.retry_after is not None:
            headers["Retry-After"] = receiver.retry_after
        return Reply(status, b"", headers)

    with answering(reply_to) as address:
        yield receiver, address


def hook(template: Template) -> Webhook:
    return Webhook("chat", "https://chat.example", template, 60_000)


def sent(template: Template, notice: Notice = NOTICE) -> tuple[str, Any]:
    return request_of(notice, hook(template))


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
    for command, said in {"x `y`": "```x `y````", "x ```y": "its command cannot be shown here"}.items():
        _, document = sent(Template.SLACK, NOTICE._replace(command=command))
        assert document["blocks"][0]["text"]["text"].splitlines()[3] == said
    assert len(sent(Template.SLACK, NOTICE._replace(texts=("x" * 9999,)))[1]["blocks"][0]["text"]["text"]) <= 3000


def test_alertmanager_gets_labels_that_stay_the_same() -> None:
    url, [firing] = sent(Template.ALERTMANAGER)
    _, [resolved] = sent(Template.ALERTMANAGER, NOTICE._replace(kind=AlertKind.RESOLVED, texts=("over",), command=""))
    assert url == "https://chat.example/api/v2/alerts"
    assert firing["labels"] == resolved["labels"]
    assert firing["labels"]["alertname"] == "behind"
    assert firing["startsAt"] == "2023-11-14T22:13:20.000Z"
    assert firing["endsAt"] == "2023-11-14T22:19:20.500Z"  # five repeats later
    assert resolved["endsAt"] == "2023-11-14T22:14:20.500Z"
    assert firing["annotations"]["command"] == NOTICE.command


def test_teams_gets_a_card_without_markup() -> None:
    _, document = sent(Template.TEAMS, NOTICE._replace(is_repeat=True))
    (attachment,) = document["attachments"]
    blocks = attachment["content"]["body"]
    assert {block["type"] for block in blocks} == {"RichTextBlock"}  # whose runs of text have none
    texts = [run["text"] for block in blocks for run in block["inlines"]]
    assert texts == [
        "Critical: prod: orders <!channel> `x`: behind (still)",
        "lag 5 offsets, limit 1",
        "Owner: team & co",
        "groupkeeper groups describe --context prod x",
        "since 2023-11-14T22:13:20.000Z",
    ]


def test_pagerduty_gets_one_incident_for_an_alert() -> None:
    _, begun = request_of(NOTICE, hook(Template.PAGERDUTY)._replace(key="secret"))
    _, again = sent(Template.PAGERDUTY, NOTICE._replace(is_repeat=True, texts=("lag 9",)))
    _, ended = sent(Template.PAGERDUTY, NOTICE._replace(kind=AlertKind.RESOLVED))
    _, other = sent(Template.PAGERDUTY, NOTICE._replace(key=NOTICE.key._replace(group="other")))
    assert begun["dedup_key"] == again["dedup_key"] == ended["dedup_key"] != other["dedup_key"]
    assert (begun["routing_key"], begun["event_action"], ended["event_action"]) == ("secret", "trigger", "resolve")
    assert (begun["payload"]["severity"], begun["payload"]["source"]) == ("critical", "prod")
    assert begun["payload"]["custom_details"]["command"] == NOTICE.command
    _, unknown = sent(Template.PAGERDUTY, NOTICE._replace(severity="page"))
    assert unknown["payload"]["severity"] == "warning"  # PagerDuty refuses others than its own


@contextmanager
def receiving_mail(replies: Mapping[str, bytes] = {}) -> Iterator[tuple[list[str], str]]:
    """A mail server that replies as told to a verb, and has what it was sent line by line."""
    got: list[str] = []

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            in_message = False
            for line in self.rfile:
                got.append(line.decode().rstrip("\r\n"))
                if in_message:
                    in_message = got[-1] != "."
                    self.wfile.write(b"" if in_message else b"250 taken\r\n")
                    continue
                verb = got[-1].split(" ")[0].upper()
                in_message = verb == "DATA"
                self.wfile.write(replies.get(verb, b"354 go on" if in_message else b"250 well") + b"\r\n")

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield got, f"smtp://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_mail_of_one_alert_is_one_thread() -> None:
    notice = NOTICE._replace(key=NOTICE.key._replace(group="a\nBcc: x@y"))
    with receiving_mail() as (got, url):
        mail = hook(Template.MAIL)._replace(url=url, sender="gk@here", recipients=("ops@here", "more@here"))
        for each in (notice, notice._replace(kind=AlertKind.RESOLVED)):
            assert post(*request_of(each, mail)) is None
    assert [line for line in got if line.startswith("rcpt")] == 2 * ["rcpt TO:<ops@here>", "rcpt TO:<more@here>"]
    begins = [at + 1 for at, line in enumerate(got) if line == "data"]
    first, second = (message_from_string("\n".join(got[at : got.index(".", at)]), policy=default) for at in begins)
    assert first["Subject"] == "Critical: prod: a\ufffdBcc: x@y: behind"
    assert (first["Bcc"], first["References"]) == (None, second["References"])
    assert NOTICE.command in got


def test_a_name_makes_no_header_of_mail() -> None:
    notice = NOTICE._replace(key=NOTICE.key._replace(group="=?utf-8?q?x=0D=0ABcc:_evil@x.org?="))
    _, message = request_of(notice, hook(Template.MAIL)._replace(sender="a@b", recipients=("c@d",)))
    again = message_from_string(message.as_string(), policy=default)
    assert (again["Bcc"], "evil" in again["Subject"], "\n" in again["Subject"]) == (None, True, False)


@pytest.mark.parametrize("host", ["mail..example", "x" * 64 + ".example", "bot:p%C3%A4ss@127.0.0.1:1"])
def test_mail_to_an_address_that_cannot_be_is_a_failure(host: str) -> None:
    mail = hook(Template.MAIL)._replace(url=f"smtp://{host}", sender="a@b", recipients=("c@d",))
    assert post(*request_of(NOTICE, mail)) is not None


@pytest.mark.parametrize(
    ("replies", "user", "expected"),
    [
        ({"RCPT": b"550 nobody"}, "", NotSent("SMTP status 550", "SMTP status 550", is_final=True)),
        ({"MAIL": b"451 later"}, "", NotSent("SMTP status 451", "SMTP status 451")),
        ({}, "me:hunter2@", NotSent("no TLS", "the mail server offers no TLS for the password", is_final=True)),
    ],
)
def test_mail_that_is_not_taken(replies: Mapping[str, bytes], user: str, expected: NotSent) -> None:
    with receiving_mail(replies) as (got, url):
        mail = hook(Template.MAIL)._replace(url=url.replace("//", f"//{user}"), sender="a@b", recipients=("c@d",))
        assert post(*request_of(NOTICE, mail)) == expected
        assert "hunter2" not in "".join(got)


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
    monkeypatch.setattr(outbox, "_FIRST_PAUSE_MS", 10)
    monkeypatch.setattr(outbox, "_LONGEST_PAUSE_MS", 20)


def about(group: str, kind: AlertKind = AlertKind.FIRING) -> Notice:
    return NOTICE._replace(key=Key("behind", "prod", group), kind=kind)


@asynccontextmanager
async def running(courier: Courier, *, is_kept: bool = True) -> AsyncIterator[None]:
    task = asyncio.create_task(courier.run(is_kept=is_kept))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.usefixtures("quick")
async def test_what_is_not_taken_is_brought_again_and_what_never_will_be_is_not() -> None:
    told: list[str] = []
    with receiving() as (receiver, address):
        hooks = {
            "chat": Webhook("chat", f"{address}/token", Template.JSON, None),
            "dead": Webhook("dead", "http://127.0.0.1:1/token", Template.JSON, None),
        }
        receiver.by_group = {"a": [500, 503, 429], "b": [404], "moved": [301]}
        courier = Courier(hooks, told.append)
        async with running(courier):
            for group in ("a", "b", "moved"):
                courier.take(about(group)._replace(to=("chat", "dead")))
            await becomes(lambda: courier.outboxes["chat"].counts.total() == 3)
            await becomes(lambda: courier.outboxes["dead"].retries > 3)
    chat = courier.outboxes["chat"]
    assert dict(chat.counts) == {"sent": 1, "failed": 2, "dropped": 0, "superseded": 0}
    assert (chat.retries, chat.failures["HTTP status 404"], chat.failures["HTTP status 503"]) == (3, 1, 1)
    assert [content["group"] for _, content in receiver.got].count("a") == 4
    assert courier.outboxes["dead"].pending == 3
    assert any(text.startswith("webhook chat: HTTP status 404; ") and "given up" in text for text in told)
    assert "redirects" in " ".join(told)
    assert len([text for text in told if text.startswith("webhook dead: ")]) == 1
    assert not any("token" in text for text in told)


async def test_a_receiver_that_fails_for_one_alert_gets_all_others_at_once() -> None:
    with receiving() as (receiver, address):
        receiver.by_group = {"ill": [503] * 99}
        courier = Courier({"chat": Webhook("chat", address, Template.JSON, None)}, lambda _: None)
        began = time.monotonic()
        async with running(courier):
            courier.take(about("ill"))
            for number in range(40):
                courier.take(about(f"g{number}"))
            await becomes(lambda: courier.outboxes["chat"].counts["sent"] == 40)
            for number in range(40):
                courier.take(about(f"g{number}", AlertKind.RESOLVED))
            courier.take(about("ill", AlertKind.RESOLVED))
            await becomes(lambda: courier.outboxes["chat"].pending == 0)
        assert time.monotonic() - began < 20  # one request of the ill one hardly takes longer than its first pause
        got = [(content["group"], content["status"]) for _, content in receiver.got]
        for number in range(40):
            assert [status for group, status in got if group == f"g{number}"] == ["firing", "resolved"]
        assert ("ill", "resolved") not in got  # nobody was told that it fires


async def test_at_most_four_requests_at_once_and_a_hanging_one_delays_no_other() -> None:
    with receiving() as (receiver, address):
        receiver.delays_s = {"slow": 1.0}
        courier = Courier({"chat": Webhook("chat", address, Template.JSON, None)}, lambda _: None)
        async with running(courier):
            courier.take(about("slow"))
            for number in range(30):
                courier.take(about(f"g{number}"))
            await becomes(lambda: courier.outboxes["chat"].counts["sent"] == 30)
            assert courier.outboxes["chat"].pending == 1
        # The end waits for what is under way: it is not sent again after a restart.
        assert courier.outboxes["chat"].counts["sent"] == 31
        assert 1 < receiver.most_at_once <= 4
        assert json.loads(courier.state())["chat"]["waiting"] == []


async def test_what_waits_is_sent_after_a_restart_once() -> None:
    with receiving() as (receiver, address):
        hooks = {"chat": Webhook("chat", address, Template.JSON, None)}
        receiver.by_group = {"a": [503], "b": [], "gone": [503]}
        courier = Courier(hooks, lambda _: None, ["behind"])
        async with running(courier):
            courier.take(about("a"))
            courier.take(about("b"))
            courier.take(about("gone")._replace(key=Key("gone", "prod", "gone")))
            await becomes(lambda: courier.outboxes["chat"].failures.total() == 2)
            await becomes(lambda: courier.outboxes["chat"].counts["sent"] == 1)
        again = Courier(hooks, lambda _: None, ["behind"], courier.state())
        assert next(again.ages_ms())[1] >= 0
        async with running(again):
            again.take(about("a", AlertKind.RESOLVED)._replace(at_ms=9))
            again.take(about("b", AlertKind.RESOLVED))
            await becomes(lambda: again.outboxes["chat"].pending == 0)
        got = [(content["group"], content["status"]) for _, content in receiver.got]
        assert got.count(("b", "firing")) == got.count(("b", "resolved")) == 1
        assert [each for each in got if each[0] == "gone"] == [("gone", "firing")]  # its rule is no more
        assert ("a", "resolved") not in got  # it was refused, so there is nothing to resolve


async def test_without_a_history_the_end_tries_what_waits_once_more_and_says_what_is_lost() -> None:
    told: list[str] = []
    with receiving() as (receiver, address):
        receiver.by_group = {"a": [503], "b": [503, 503]}
        courier = Courier({"chat": Webhook("chat", address, Template.JSON, None)}, told.append)
        async with running(courier, is_kept=False):
            courier.take(about("a"))
            courier.take(about("b"))
            await becomes(lambda: courier.outboxes["chat"].failures.total() == 2)
        assert courier.outboxes["chat"].counts["sent"] == 1
        assert told[-1] == "webhook chat: 1 notices were not delivered, and are lost as there is no history"


async def test_a_mistake_in_a_request_ends_the_courier(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(module, "post", broken)
    courier = Courier({"chat": Webhook("chat", "http://127.0.0.1:1", Template.JSON, None)}, lambda _: None)
    courier.take(NOTICE)
    async with asyncio.timeout(20):
        with pytest.raises(RuntimeError, match="a mistake"):
            await courier.run(is_kept=True)


@pytest.mark.parametrize("text", ["120", "Wed, 21 Oct 2099 07:28:00 GMT", "soon", "-1"])
def test_a_pause_that_the_receiver_asks_for(text: str) -> None:
    with receiving() as (receiver, address):
        receiver.by_group, receiver.retry_after = {"a": [429]}, text
        failure = post(address, {"group": "a"})
        assert failure is not None
        assert not failure.is_final
        asked_ms = failure.retry_after_ms
        assert asked_ms == 120_000 if text == "120" else asked_ms is None or asked_ms > 10**9


def test_a_server_with_rules_tells_webhooks(tmp_path: Path) -> None:
    with receiving() as (receiver, address), BackgroundBroker() as broker:
        arrange(broker.bootstrap_servers)
        rules = tmp_path / "rules.toml"
        rules.write_text(
            '[[rule]]\nname = "behind"\nmax_lag = 7\n[[rule]]\nname = "typo"\ngroups = ["<b>", "a*"]\nmax_lag = 1\n'
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
            text = served.until(lambda text: 'groupkeeper_rule_unmatched_names{rule="typo"} 1' in text)
            assert 'groupkeeper_rule_groups{rule="typo",cluster="prod"} 1' in text
            assert "Rule 'typo': no group matches '<b>' so far." in served.get("/readyz").text
            assert "Rule &#x27;typo&#x27;: no group matches &#x27;&lt;b&gt;&#x27; so far." in served.get("/").text
            served.process.terminate()
            assert served.process.wait(60) == 0
            assert served.process.stderr is not None
            assert served.process.stderr.read().count("rule 'typo': no group matches '<b>' so far") == 1
        with serving(*words, *history, "--rules", str(rules)) as served:
            served.until(lambda text: 'groupkeeper_alert_firing{rule="behind"' in text)
            broker.stop()
            got = receiver.until(lambda got: len(got) >= 4)  # what was told before the restart is not told again
        told = [(content["rule"], content["status"]) for path, content in got if path == "/chat"]
        assert told == [("behind", "firing"), ("down", "firing")]


def test_a_server_with_rules_needs_no_webhook(tmp_path: Path) -> None:
    with BackgroundBroker() as broker:
        arrange(broker.bootstrap_servers)
        rules = tmp_path / "rules.toml"
        rules.write_text('[[rule]]\nname = "behind"\nmax_lag = 7\n')
        where = ("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--interval", "100ms")
        with serving(*where, "--rules", str(rules)) as served:
            served.until(lambda text: 'groupkeeper_alert_firing{rule="behind"' in text)
            served.process.send_signal(signal.SIGINT)
            assert served.process.wait(60) == 0


def test_a_server_that_ends_keeps_what_waits_for_the_next_one(tmp_path: Path) -> None:
    with receiving() as (receiver, address), BackgroundBroker() as broker:
        arrange(broker.bootstrap_servers)
        rules = tmp_path / "rules.toml"
        rules.write_text(f'[[rule]]\nname = "behind"\nmax_lag = 7\n[webhook.chat]\nurl = "{address}/chat"\n')
        words: tuple[str, ...] = ("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--interval", "100ms")
        words = (*words, "--history", str(tmp_path / "history.sqlite"), "--rules", str(rules))
        receiver.by_group, receiver.retry_after = {"search": [503, 503]}, "600"
        with serving(*words) as served:
            served.until(lambda text: 'groupkeeper_webhook_failures_total{webhook="chat",reason="HTTP' in text)
            text = served.until(lambda text: 'groupkeeper_webhook_pending{webhook="chat"} 1' in text)
            assert 'groupkeeper_webhook_oldest_pending_seconds{webhook="chat"} ' in text
            served.process.terminate()
            assert served.process.wait(60) == 0
        receiver.by_group = {}
        with serving(*words) as served:
            receiver.until(lambda got: len(got) == 2)
            served.until(lambda text: 'groupkeeper_webhook_notices_total{webhook="chat",outcome="sent"} 1' in text)
            time.sleep(0.6)  # it is written at most once in 0.25 s
            served.process.kill()
        with serving(*words) as served:
            served.until(lambda text: 'groupkeeper_alert_firing{rule="behind"' in text)
        assert [content["status"] for _, content in receiver.got] == ["firing", "firing"]


def test_bad_rules_are_refused_at_the_start(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from groupkeeper.cli.main import main

    path = tmp_path / "rules.toml"
    path.write_text("[[rule]]\n")
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--bootstrap-server", "h:1", "--rules", str(path)])
    assert ended.value.code == 2
    assert "rule 1: name is missing" in capfd.readouterr().err
