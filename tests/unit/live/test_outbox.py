"""A webhook that fails now and then: `goldens/notices.txt` is the manual, and runs."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.live.test_alerts import MINUTE_MS, snapshot_of

from groupkeeper.live import outbox as outboxes
from groupkeeper.live.alerts import AlertKind, Alerts, Key, Notice
from groupkeeper.live.outbox import NotSent, Outbox
from groupkeeper.live.rules import read_rules

GOLDENS = Path(__file__).parent / "goldens"
ANSWERS = {
    "500": NotSent("500", "500", may_be_taken=True),
    "503": NotSent("503", "503"),
    "429": NotSent("429", "429", retry_after_ms=90_000),
    "404": NotSent("404", "404", is_final=True),
    "silent": NotSent("no answer", "no answer", may_be_taken=True),
}


class Stage:
    """Alerts, the outbox of one webhook, and what this answers: by group, otherwise 200."""

    def __init__(self) -> None:
        self.rules = read_rules(str(GOLDENS / "rules.toml"))
        self.alerts = Alerts(self.rules)
        self.outbox = Outbox()
        self.answers: dict[str, str] = {}
        self.hanging: list[Notice] = []

    def restart(self, now_ms: int) -> None:
        self.outbox = Outbox(json.loads(json.dumps(self.outbox.state())), now_ms)
        self.alerts = Alerts(self.rules, self.alerts.state())
        self.hanging = []

    def send(self, now_ms: int) -> Iterator[str]:
        while (notice := self.outbox.next(now_ms)) is not None:
            answer = self.answers.get(notice.key.group, "200")
            yield f"  → {'again ' if notice.is_repeat else ''}{notice.kind} {notice.key.group}: {answer}"
            if answer == "hangs":
                self.hanging.append(notice)
            else:
                self.answer(notice, answer, now_ms)

    def answer(self, notice: Notice, answer: str, now_ms: int) -> None:
        if answer == "200":
            self.outbox.succeeded(notice.key, now_ms)
        else:
            self.outbox.failed(notice.key, ANSWERS[answer], now_ms)

    def run(self, line: str) -> Iterator[str]:
        match = re.fullmatch(r"> ([\d.]+)m (.*)", line)
        assert match, line
        now_ms, what = round(float(match[1]) * MINUTE_MS), match[2]
        if what == "restart":
            self.restart(now_ms)
        elif what.startswith("answers"):
            self.answers = dict(part.split("=") for part in what.split()[1:])
        elif what.startswith("now "):
            self.answer(self.hanging.pop(0), what.split()[1], now_ms)
        elif what != "later":
            for notice in self.alerts.take(snapshot_of(what, now_ms), now_ms):
                if "chat" in notice.to:
                    self.outbox.take(notice, now_ms)
        yield from self.send(now_ms)
        if self.outbox.pending:
            yield f"  {self.outbox.pending} pending for {self.outbox.age_ms(now_ms) / MINUTE_MS:g}m"


def test_the_manual() -> None:
    written = (GOLDENS / "notices.txt").read_text()
    stage, lines = Stage(), []
    for line in written.splitlines():
        if line.startswith("  "):
            continue
        lines.append(line)
        if line.startswith("# "):
            stage = Stage()
        elif line.startswith("> "):
            lines += stage.run(line)
    text = "\n".join(lines) + "\n"
    if "WRITE_GOLDENS" in os.environ:
        (GOLDENS / "notices.txt").write_text(text)
    assert text == written


def notice_of(group: str, kind: AlertKind = AlertKind.FIRING) -> Notice:
    return Notice(kind, Key("r", "c", group), "warning", "", 0, 0, (), "", ("chat",))


def test_a_webhook_that_fails_for_all_is_tried_by_one_request_at_a_time() -> None:
    outbox = Outbox()
    for number in range(50):
        outbox.take(notice_of(f"g{number}"), 0)
    first = [outbox.next(0) for _ in range(5)]
    assert first[4] is None  # four at once
    tried, now_ms = 4, 0
    for notice in first[:4]:
        assert notice is not None
        outbox.failed(notice.key, ANSWERS["503"], now_ms)
    while now_ms < 600_000:
        if notice := outbox.next(now_ms):
            tried += 1
            assert outbox.next(now_ms) is None
            outbox.failed(notice.key, ANSWERS["503"], now_ms)
        pause_ms = outbox.pause_ms(now_ms)
        assert pause_ms is not None
        now_ms += max(1, pause_ms)
    assert tried < 30
    while notice := outbox.next(now_ms + 60_000):
        outbox.succeeded(notice.key, now_ms)
    assert outbox.counts["sent"] == 50
    assert outbox.pause_ms(now_ms) is None


def test_what_waits_is_bounded_and_who_was_told_is_told_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outboxes, "_MOST_WAITING", 3)
    outbox = Outbox()
    outbox.take(notice_of("told", AlertKind.RESOLVED), 0)
    for number in range(4):
        outbox.take(notice_of(f"g{number}"), number)
    assert outbox.counts["dropped"] == 2
    assert outbox.pending == 3
    outbox.take(notice_of("g0", AlertKind.RESOLVED), 5)  # it was dropped: nothing to resolve
    sent = []
    while notice := outbox.next(10):
        sent.append((notice.key.group, notice.kind.value))
        outbox.succeeded(notice.key, 10)
    assert sent == [("told", "resolved"), ("g2", "firing"), ("g3", "firing")]


def test_a_notice_is_given_up_after_a_day() -> None:
    outbox = Outbox()
    outbox.take(notice_of("g"), 0)
    now_ms, tries = 0, 0
    while outbox.pending:
        notice = outbox.next(now_ms)
        assert notice is not None
        outbox.failed(notice.key, ANSWERS["503"], now_ms)
        tries += 1
        now_ms += outbox.pause_ms(now_ms) or 0
    assert now_ms / 3600_000 == pytest.approx(24, abs=0.1)
    assert tries < 1500
    assert outbox.counts["failed"] == 1
