"""Files of rules: what is wrong with one is said with its place, and never with a secret."""

import tomllib
from pathlib import Path

import pytest

from groupkeeper.client.admin.types import GroupState
from groupkeeper.live.rules import Template, read_rules, rules_of
from groupkeeper.live.toml_tables import BadTable

RULE = '[[rule]]\nname = "behind"\nmax_lag = 5\n'
HOOK = '[webhook.chat]\nurl = "https://chat.example/secret"\n'


def test_what_a_rule_says(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("https://chat.example/token\n")
    text = """
        [[rule]]
        name = "well"
        max_time_lag = "1h30m"
        states = ["stable", "Empty"]
        [[silence]]
        until = 2026-12-01T06:00:00Z
        why = "moving"
        [webhook.chat]
        url_file = "url"
        template = "slack"
        repeat = "never"
    """
    path = tmp_path / "rules.toml"
    path.write_text(text)
    rules = read_rules(str(path))
    [rule] = rules.rules
    assert rule.limits.max_time_lag_ms == 5_400_000
    assert rules.short_ms == 60_000
    path.write_text(text + '[[rule]]\nname = "soon"\nmax_time_lag = "30s"\n')
    assert read_rules(str(path)).short_ms == 30_000
    assert rule.limits.states == {GroupState.STABLE, GroupState.EMPTY}
    assert rule.to == ("chat",)
    assert tuple(rules.webhooks["chat"]) == ("chat", "https://chat.example/token", Template.SLACK, None, "", "", ())
    assert (rules.silences[0].from_ms, rules.silences[0].until_ms) == (0, 1_796_104_800_000)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no [[rule]]"),
        ("[[rule]]\nmax_lag = 5", "rule 1: name is missing"),
        ('[[rule]]\nname = "x"', "rule 'x': expected limits"),
        (RULE + "cluster_unreachable = true", "and not both"),
        (RULE + "max_lagg = 5", "rule 'behind': 'max_lagg' is not known here; 'max_lag' is"),
        (RULE.replace("max_lag", "max_lagg"), "rule 'behind': 'max_lagg' is not known here; 'max_lag' is"),
        (RULE.replace("name", "nam"), "rule 1: name is missing; 'nam' is not known here"),
        (RULE.replace("[[rule]]", "[[rules]]"), "the file: 'rules' is not known here; 'rule' is"),
        (RULE + "zzz = 5", "rule 'behind': 'zzz' is not known here; known: name, max_lag, "),
        (RULE + HOOK.replace("url", "urll"), "webhook.chat: 'urll' is not known here; 'url' is"),
        (RULE + '[[silence]]\nwy = "x"', "silence 1: why is missing; 'wy' is not known here"),
        (RULE + "for = 5", "rule 'behind': for: a duration needs a unit: 5ms, 5s, 5m, 5h or 5d"),
        (RULE + 'for = "5"', "rule 'behind': for: a duration needs a unit: 5ms, 5s, 5m, 5h or 5d"),
        (RULE + 'for = "soon"', "rule 'behind': for: expected a duration, for example \"10m\", not 'soon'"),
        (RULE + 'for = "-10m"', "rule 'behind': for: expected a duration, for example \"10m\", not '-10m'"),
        (RULE + 'for = "-PT5M"', "rule 'behind': for: a duration cannot be negative: '-PT5M'"),
        (RULE + 'for = "soon"', "rule 'behind': for: "),
        (RULE.replace("5", "-5"), "rule 'behind': max_lag: expected a number, at least 0"),
        (RULE.replace("5", "true"), "rule 'behind': max_lag: expected a number, at least 0"),
        (RULE + 'groups = "orders"', "rule 'behind': groups: expected a list of texts"),
        (RULE + 'states = ["Sad"]', "rule 'behind': states: expected some of "),
        (RULE + 'to = ["pager"]', "rule 'behind': there is no [webhook.pager]: to has names of webhooks"),
        (RULE + 'to = ["https://chat/x"]', "rule 'behind': there is no [webhook.…]: to has names of webhooks"),
        (RULE + RULE, "two rules are called 'behind'"),
        (RULE + "[[silence]]", "silence 1: why is missing"),
        (RULE + '[[silence]]\nwhy = "x"\nuntil = "tomorrow"', "silence 1: until: expected a date and time"),
        (RULE + "[webhook.chat]", "webhook.chat: expected one of url, url_file, url_variable"),
        (RULE + '[webhook.chat]\nurl_file = "nowhere"', "webhook.chat: cannot read 'nowhere'"),
        (
            RULE + '[webhook.chat]\nurl_variable = "NOT_SET_ANYWHERE"',
            "webhook.chat: url_variable 'NOT_SET_ANYWHERE' gives nothing",
        ),
        (RULE + '[webhook.p]\ntemplate = "pagerduty"', "webhook.p: expected one of key, key_file, key_variable"),
        (RULE + HOOK + 'key = "x"', "webhook.chat: 'key' is not known here"),
        (RULE + '[webhook.m]\ntemplate = "mail"\nurl = "smtp://h"\nfrom = "a@b"', "webhook.m: mail_to is missing"),
        (
            RULE + '[webhook.m]\ntemplate = "mail"\nurl = "http://h"\nfrom = "a@b"\nmail_to = ["c@d"]',
            "webhook.m: url gives no smtp:// or smtps:// address",
        ),
        (
            RULE + '[webhook.m]\ntemplate = "mail"\nurl = "smtp://h"\nfrom = "a@b"\nmail_to = ["c\\n"]',
            "webhook.m: 'c\\n' is no address of mail",
        ),
        (
            RULE + HOOK + 'template = "pigeon"',
            "webhook.chat: template: expected one of json, slack, teams, pagerduty, alertmanager, mail",
        ),
        (RULE + "[rules]", "'rules' is not known here"),
    ],
)
def test_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(BadTable) as refused:
        rules_of(tomllib.loads(text), Path("."))
    assert said in str(refused.value)


def test_a_file_that_is_no_toml(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text("rule = [")
    with pytest.raises(BadTable, match=r"rules\.toml: "):
        read_rules(str(path))


def test_an_address_is_never_said() -> None:
    with pytest.raises(BadTable) as refused:
        rules_of(tomllib.loads(RULE + '[webhook.chat]\nurl = "hooks.example/secret"'), Path("."))
    assert "secret" not in str(refused.value)


def test_the_example_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGERDUTY_KEY", "secret")
    guide = (Path(__file__).parents[3] / "docs/serve.md").read_text()
    blocks = [block.split("```")[0] for block in guide.split("```toml\n")[1:]]
    (example,) = [block for block in blocks if "[[rule]]" in block]
    (tmp_path / "slack-url").write_text("https://chat.example/token")
    rules = rules_of(tomllib.loads(example), tmp_path)
    assert [rule.name for rule in rules.rules] == ["orders behind", "cluster down"]
    assert set(rules.webhooks) == {"chat", "oncall", "post"}
