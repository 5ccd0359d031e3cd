"""The files of rules, tokens and roles count as they are now, without a new start."""

import signal
from pathlib import Path

from tests.live.stage import arrange
from tests.live.test_webhooks import receiving
from tests.web.serving import serving

from groupkeeper.testing.background import BackgroundBroker

ALICE, BOB, NEW = ("token-of-alice-0123456789", "token-of-bob-0123456789", "new-token-of-alice-0123456789")


def of(token: str) -> str:
    return f"Bearer {token}"


def test_tokens_and_roles(broker: BackgroundBroker, tmp_path: Path) -> None:
    tokens, roles = tmp_path / "tokens", tmp_path / "roles.toml"
    tokens.write_text(f"alice {ALICE}\nbob {BOB}\n")
    roles.write_text('[[role]]\nusers = ["alice"]\nmay = "view"\n')
    where = ("--bootstrap-server", f"prod={broker.bootstrap_servers}")
    with serving(*where, "--token-file", str(tokens), "--roles", str(roles)) as served:
        assert served.get("/cluster?cluster=prod", Authorization=of(BOB)).status == 404

        roles.write_text('[[role]]\nusers = ["alice", "bob"]\nmay = "view"\n')
        served.until(lambda text: "<h1>prod" in text, "/cluster?cluster=prod", Authorization=of(BOB))

        tokens.write_text(f"alice {NEW}\n")
        served.process.send_signal(signal.SIGHUP)
        served.until(lambda text: "<title>Log in</title>" in text, "/", Authorization=of(BOB))
        assert served.get("/", Authorization=of(ALICE)).status == 401
        assert served.get("/", Authorization=of(NEW)).status == 200

        for content in ('[[role]]\nusers = ["alice"]\nmay = "veiw"\n', None):
            roles.unlink() if content is None else roles.write_text(content)
            served.process.send_signal(signal.SIGHUP)
            said = "expected one of view, change" if content else "cannot read"
            for path in ("/readyz", "/"):
                served.until(lambda text, said=said: said in text, path, Authorization=of(NEW))  # type: ignore[misc]
        roles.write_text('[[role]]\nusers = ["alice"]\nmay = "view"\n')
        served.process.send_signal(signal.SIGHUP)
        served.until(lambda text: "cannot read" not in text, "/readyz", Authorization=of(NEW))
        served.process.terminate()
        assert served.process.wait(60) == 0
        assert served.process.stderr is not None
        log = served.process.stderr.read()
    assert f"{tokens} was read again" in log
    assert log.count(f"{roles} is not used as it is now: argument --roles: ") == 2
    assert "0123456789" not in log


def test_rules_and_webhooks(tmp_path: Path) -> None:
    with receiving() as (receiver, address), BackgroundBroker() as broker:
        arrange(broker.bootstrap_servers)
        path = tmp_path / "rules.toml"
        rule = '[[rule]]\nname = "{}"\nmax_lag = 7\n'
        hook = f'[webhook.{{}}]\nurl = "{address}/{{}}"\n'
        path.write_text(rule.format("first") + hook.format("chat", "chat") + hook.format("gone", "gone"))
        where = ("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--interval", "100ms")
        with serving(*where, "--rules", str(path)) as served:
            receiver.until(lambda got: len(got) >= 2)

            path.write_text(rule.format("second") + hook.format("chat", "new") + hook.format("more", "more"))
            served.process.send_signal(signal.SIGHUP)
            got = receiver.until(lambda got: len(got) >= 5)[2:]
            told = sorted((where, content["rule"], content["status"]) for where, content in got)
            assert told == [("/more", "second", "firing"), ("/new", "first", "resolved"), ("/new", "second", "firing")]
            text = served.until(lambda text: 'rule="second"' in text)
            assert 'rule="first"' not in text
            assert 'webhook="gone"' not in text
            served.process.terminate()
            assert served.process.wait(60) == 0


def test_a_hangup_ends_a_server_without_files(broker: BackgroundBroker) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, and children inherit that
    try:
        with serving("--bootstrap-server", broker.bootstrap_servers) as served:
            served.process.send_signal(signal.SIGHUP)
            assert served.process.wait(60) == -signal.SIGHUP
    finally:
        signal.signal(signal.SIGHUP, before)
