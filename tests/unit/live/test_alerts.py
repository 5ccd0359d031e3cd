"""A sequence of polls, and what webhooks are told: `goldens/alerts.txt` is the manual, and runs."""

import os
import re
import tomllib
from pathlib import Path

import pytest
from tests.unit.live.views import row, snapshot, view

from groupkeeper.live.alerts import AlertKind, Alerts, Notice
from groupkeeper.live.model import ClusterSnapshot, GroupView, Wait
from groupkeeper.live.rules import Rules, read_rules, rules_of
from groupkeeper.operations.problems import Problem
from groupkeeper.shell import Way

WAYS = {"prod": Way(("--context", "prod"))}
GOLDENS = Path(__file__).parent / "goldens"
MINUTE_MS = 60_000


def group_of(text: str) -> GroupView:
    """`orders lag=5 time=11m lost=3 rebalances=2`, or `orders unknown`."""
    name, *facts = text.split()
    values = dict(fact.partition("=")[::2] for fact in facts)
    if "unknown" in values:
        return view(name, problems=(Problem("COORDINATOR_NOT_AVAILABLE", "no coordinator", name),))
    lost = int(values.get("lost", 0))
    rows = [row("t", 0, 10_000 - int(values.get("lag", lost)), 10_000, start=10_000 if lost else 0)]
    waits = [Wait(int(values.get("time", "0m").removesuffix("m")) * MINUTE_MS)]
    return view(name, rows, waits, rebalances=int(values.get("rebalances", 0)))


def snapshot_of(text: str, now_ms: int) -> ClusterSnapshot:
    if text == "down":
        return snapshot(at_ms=None, problems=(Problem("CALL_TIMED_OUT", "no answer"),))
    return snapshot(*map(group_of, text.split(" | ")), at_ms=now_ms)


def one_rule(limit: str) -> Rules:
    hook = '[webhook.chat]\nurl = "http://127.0.0.1:1/"\n[[rule]]\nname = "behind"\nto = ["chat"]\n'
    return rules_of(tomllib.loads(hook + limit), GOLDENS)


def told(notice: Notice) -> str:
    where = notice.key.cluster + (f" {notice.key.group}" if notice.key.group else "")
    parts = [f"{'again ' if notice.is_repeat else ''}{notice.kind} {notice.severity} {notice.key.rule}: {where}"]
    parts.append(f"since {notice.since_ms / MINUTE_MS:g}m: {'; '.join(notice.texts)}")
    parts += [notice.command] if notice.command else []
    return f"  {' | '.join(parts)} → {', '.join(notice.to)}"


def test_the_manual() -> None:
    rules = read_rules(str(GOLDENS / "rules.toml"))
    written = (GOLDENS / "alerts.txt").read_text()
    each: dict[str, Alerts] = {}
    lines = []
    for line in written.splitlines():
        if line.startswith("  "):
            continue
        lines.append(line)
        if line == "> restart":
            each = {name: Alerts(rules, alerts.state(), WAYS) for name, alerts in each.items()}
        elif line.startswith("> "):
            match = re.fullmatch(r"> ([\d.]+)m (?:@(\d) )?(.*)", line)
            assert match, line
            now_ms = int(float(match[1]) * MINUTE_MS)
            alerts = each.setdefault(match[2] or "", Alerts(rules, ways=WAYS))  # @2 is another program
            lines += map(told, alerts.take(snapshot_of(match[3], now_ms), now_ms))
    text = "\n".join(lines) + "\n"
    if "WRITE_GOLDENS" in os.environ:
        (GOLDENS / "alerts.txt").write_text(text)
    assert text == written


def test_alerts_of_rules_that_are_gone_are_forgotten() -> None:
    rules = read_rules(str(GOLDENS / "rules.toml"))
    alerts = Alerts(rules)
    for minute in (0, 6):
        alerts.take(snapshot_of("orders lag=5000 lost=1", minute * MINUTE_MS), minute * MINUTE_MS)
    assert {each.key.rule for each in alerts.firing(0)} == {"behind", "losing"}
    fewer = rules._replace(rules=tuple(rule for rule in rules.rules if rule.name != "losing"), webhooks={})
    again = Alerts(fewer._replace(rules=tuple(rule._replace(to=()) for rule in fewer.rules)), alerts.state())
    assert [each.key.rule for each in again.firing(0)] == ["behind"]


def test_no_alert_is_repeated_more_often_than_clusters_are_polled() -> None:
    rules = read_rules(str(GOLDENS / "rules.toml"))
    before, after = rules.webhooks, rules.with_polls(5 * 3_600_000).webhooks
    assert {name: max(5 * 3_600_000, each.repeat_ms) for name, each in before.items() if each.repeat_ms} == {
        name: each.repeat_ms for name, each in after.items() if each.repeat_ms
    }
    assert rules.with_polls(15_000).webhooks == before


@pytest.mark.parametrize(
    "edited",
    ['except_groups = ["orders"]\nmax_lag = 1', 'clusters = ["other"]\nmax_lag = 1', "cluster_unreachable = true"],
)
def test_alerts_of_what_a_rule_is_not_for_any_more_end(edited: str) -> None:
    alerts = Alerts(one_rule("max_lag = 1"))
    assert [each.kind for each in alerts.take(snapshot_of("orders lag=5", 0), 0)] == [AlertKind.FIRING]
    again = Alerts(one_rule(edited), alerts.state())
    (notice,) = again.take(snapshot_of("orders lag=5", MINUTE_MS), MINUTE_MS)
    assert (notice.kind, notice.to) == (AlertKind.RESOLVED, ("chat",))
    assert notice.texts == ("the rule no longer applies to it",)
    assert again.firing(0) == []


def test_what_of_rules_matches_nothing_is_told_once_all_clusters_were_polled() -> None:
    text = """
        [[rule]]
        name = "typo"
        groups = ["orders", "paymnts", "no-such-*"]
        max_lag = 1
        [[rule]]
        name = "elsewhere"
        clusters = ["staging"]
        cluster_unreachable = true
        [[rule]]
        name = "nobody"
        except_groups = ["*"]
        max_lag = 1
    """
    alerts = Alerts(rules_of(tomllib.loads(text), GOLDENS))
    alerts.take(snapshot_of("orders lag=0", 0), 0)
    assert list(alerts.unmatched(["prod", "dr"])) == [("elsewhere", "no cluster here matches 'staging'")]
    said = [("typo", "no group matches 'paymnts' so far"), ("typo", "no group matches 'no-such-*' so far")]
    gone = ("elsewhere", "no cluster here matches 'staging'")
    assert list(alerts.unmatched(["prod"])) == [*said, gone, ("nobody", "it applies to no group so far")]
    alerts.take(snapshot_of("paymnts lag=0", 1), 1)
    alerts.take(snapshot_of("other lag=0", 2), 2)  # it was there
    assert list(alerts.unmatched(["prod"])) == [said[1], gone, ("nobody", "it applies to no group so far")]
    assert ("typo", "prod", 0) in alerts.judged()


def test_a_notice_of_a_status_has_its_reason() -> None:
    (notice,) = Alerts(one_rule('status = ["lagging"]')).take(snapshot_of("orders lag=5 time=11m", 0), 0)
    assert notice.texts == ("status lagging: t-0: the next record has waited for 11 min; the group has no members",)


@pytest.mark.parametrize("limit", ["max_rebalances = 2\nwithin = '5m'", 'status = ["unstable"]'])
def test_after_a_restart_rebalances_are_not_known_before_they_were_seen_for_long_enough(limit: str) -> None:
    rules = one_rule(limit)
    alerts = Alerts(rules)

    def told_at(minute: int, rebalances: int) -> list[AlertKind]:
        (group,) = snapshot_of(f"orders rebalances={rebalances}", 0).groups.values()
        shown = snapshot(group._replace(rebalances_lately=rebalances), at_ms=minute * MINUTE_MS)
        return [each.kind for each in alerts.take(shown, minute * MINUTE_MS)]

    assert told_at(0, 0) == []
    assert told_at(1, 10) == [AlertKind.FIRING]
    alerts = Alerts(rules, alerts.state())
    assert [told_at(minute, 0) for minute in (2, 6)] == [[], []]
    assert told_at(12, 0) == [AlertKind.RESOLVED]
