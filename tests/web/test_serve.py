"""`groupkeeper serve`: what it answers, whom it asks, and how it ends."""

import gzip
import signal
import socket
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as families
from tests.acts import ask
from tests.live.stage import arrange
from tests.web.serving import Served, serving

from groupkeeper.broker.authorizer import Operation, ResourceType, RuleAuthorizer
from groupkeeper.cli.main import main
from groupkeeper.testing.background import BackgroundBroker


@pytest.fixture(scope="module")
def served(broker: BackgroundBroker) -> Iterator[Served]:
    where = ("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--bootstrap-server", "dr=127.0.0.1:1")
    with serving(*where, "--interval", "1h", "--timeout", "300ms") as served:
        served.until_ready()
        yield served


def value(text: str, name: str, **labels: str) -> float | None:
    for family in families(text):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return float(sample.value)
    return None


def test_metrics_of_several_clusters(served: Served) -> None:
    answer = served.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert value(answer.text, "groupkeeper_group_lag", cluster="prod", group="billing", topic="orders") == 5
    assert value(answer.text, "groupkeeper_cluster_up", cluster="prod") == 1
    # A cluster that is down has its reason, and no groups; the other one is none the worse for it.
    assert value(answer.text, "groupkeeper_cluster_up", cluster="dr") == 0
    assert value(answer.text, "groupkeeper_cluster_problem", cluster="dr", error="CONNECTION_FAILED") == 1
    lag_s = value(answer.text, "groupkeeper_group_lag_seconds", cluster="prod", group="search")
    assert lag_s is not None
    assert 9 * 3600 <= lag_s < 10 * 3600  # the cluster is made once for all tests


def test_the_formats_and_compression(served: Served) -> None:
    open_metrics = served.get("/metrics", Accept="application/openmetrics-text;version=1.0.0")
    assert open_metrics.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert open_metrics.text.endswith("# EOF\n")
    packed = served.get("/metrics", Accept_Encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == served.get("/metrics", Accept_Encoding="gzip;q=0").body
    assert int(packed.headers["content-length"]) == len(packed.body)


def test_health_and_readiness(served: Served) -> None:
    assert served.get("/healthz").text == "ok\n"
    ready = served.get("/readyz")
    assert ready.status == 200
    assert [line.partition(",")[0][:10] for line in ready.text.splitlines()] == ["prod: up", "dr: down: "]


def test_what_comes_with_it(served: Served) -> None:
    assert served.get("/grafana-dashboard.json").text.startswith("{")
    assert "groups:" in served.get("/prometheus-rules.yaml").text
    for path in ("/", "/metrics", "/grafana-dashboard.json"):
        assert served.get(path).headers["content-security-policy"].startswith("default-src 'none'")
    assert served.get("/../../etc/passwd").status == 404
    assert served.get("/metrics", "POST").status == 405
    assert served.get("/metrics", "HEAD").body == b""
    assert served.get("/metrics", "HEAD").status == 200


def test_pages(served: Served) -> None:
    fleet = served.get("/")
    assert fleet.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src 'self'; connect-src 'self'" in fleet.headers["content-security-policy"]  # nothing inline
    assert "1 cluster cannot be reached: dr" in fleet.text
    listed = served.get("/cluster?cluster=prod&q=bill&sort=lag")
    assert (">billing<" in listed.text, ">search<" in listed.text) == (True, False)
    group = served.get("/group?cluster=prod&group=search")
    assert "Partitions" in group.text
    assert served.get("/groups.csv?cluster=prod").text.splitlines()[0].startswith("cluster,group,status,")
    assert served.get("/style.css").headers["content-type"].startswith("text/css")
    for path in ("/cluster?cluster=nowhere", "/group?cluster=prod&group=nobody", "/nowhere"):
        lost = served.get(path)
        assert (lost.status, "<title>Not found</title>" in lost.text) == (404, True)
        assert lost.headers["content-security-policy"].startswith("default-src 'none'")
    for path in ("/group", "/groups.csv"):
        unnamed = served.get(path)
        assert (unnamed.status, "Name one of the clusters, cluster=NAME: prod, dr." in unnamed.text) == (400, True)
    for path in ("/group?cluster=dr&group=g", "/topic?cluster=dr&topic=t", "/groups.csv?cluster=dr"):
        away = served.get(path)
        assert away.status == 503
        assert "dr cannot be reached now, since 20" in away.text


def test_only_names_of_this_machine_are_answered_to(served: Served, broker: BackgroundBroker) -> None:
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::1"):
        assert served.get("/", Host=host).status in (400, 421)
    for host in ("localhost", f"LOCALHOST:{served.port}", "[::1]:80", "127.0.0.1"):
        assert served.get("/", Host=host).status == 200
    where = ("--bootstrap-server", broker.bootstrap_servers, "--allowed-host", "Groups.example")
    with serving(*where) as proxied:
        assert proxied.get("/", Host="groups.example").status == 200
        assert proxied.get("/", Host="evil.example").status == 421


def test_no_scrape_makes_a_broker_be_asked(served: Served, broker: BackgroundBroker) -> None:
    every = broker.faults.delay(None, 0)
    before = served.get("/metrics").text
    assert all(served.get("/metrics").text == before for _ in range(20))
    assert served.get("/group?cluster=prod&group=search").status == 200
    assert every.seen == 0
    every.remove()


def test_strange_requests_do_no_harm(served: Served) -> None:
    hostile = (
        b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: \xff\xfe\x00\r\n\r\n",
        b"\x00" * 1000,
        b"GET " + b"/" * 50_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
    )
    for request in hostile:
        with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
            connection.sendall(request)
            assert connection.recv(100)[:5] in (b"HTTP/", b"")  # an answer or an end, and no waiting
    # Readers that take nothing, and connections that say nothing.
    silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(40)]
    for connection in silent[::2]:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
    assert served.get("/healthz").status == 200
    for connection in silent:
        connection.close()
    assert served.get("/metrics").status == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(broker: BackgroundBroker, tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "history.sqlite"
    where = ("--bootstrap-server", broker.bootstrap_servers, "--history", str(path))
    with serving(*where) as served:
        served.until_ready()
        assert value(served.get("/metrics").text, "groupkeeper_history_up") == 1
        idle = socket.create_connection(("127.0.0.1", served.port))
        served.process.send_signal(number)
        assert served.process.wait(60) == 0
        assert served.process.stderr is not None
        assert "Traceback" not in served.process.stderr.read()
        idle.close()
    with sqlite3.connect(path) as file:
        assert file.execute("SELECT count(*) FROM samples").fetchone() == (3,)


def test_a_cluster_that_never_answers_holds_up_no_other(
    broker: BackgroundBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # connections are made, and nobody reads
        clusters: tuple[str, ...] = ("--bootstrap-server", f"prod={broker.bootstrap_servers}")
        clusters = (*clusters, "--bootstrap-server", f"silent=127.0.0.1:{silent.getsockname()[1]}")
        with serving(*clusters, "--interval", "50ms", "--timeout", "20s") as served:
            text = served.until(
                lambda text: (value(text, "groupkeeper_collector_polls_total", cluster="prod") or 0) > 5
            )
            assert value(text, "groupkeeper_group_lag", cluster="prod", group="search") == 8
            assert value(text, "groupkeeper_collector_polls_total", cluster="silent") in (None, 0)
        began = time.monotonic()
        assert main(["check", "--max-lag", "8", "--timeout", "500ms", *clusters]) == 1
        assert time.monotonic() - began < 60
        assert "cluster silent: " in capsys.readouterr().err


def test_series_come_and_go_with_their_groups(tmp_path: Path) -> None:
    authorizer = RuleAuthorizer(allows_without_rules=True)
    with BackgroundBroker(authorizer=authorizer) as broker:
        arrange(broker.bootstrap_servers)
        with serving(
            "--bootstrap-server", broker.bootstrap_servers, "--interval", "50ms", "--timeout", "400ms"
        ) as served:
            served.until(lambda text: value(text, "groupkeeper_group_lag", group="search") == 8)
            ask(broker.bootstrap_servers, lambda admin: admin.delete_consumer_groups(["search"])).all()
            served.until(lambda text: 'group="search"' not in text and 'group="billing"' in text)
            authorizer.deny(Operation.DESCRIBE, ResourceType.GROUP, "billing")
            text = served.until(lambda text: value(text, "groupkeeper_group_problem", group="billing") == 1)
            assert 'acl="DESCRIBE on group billing"' in text
            assert value(text, "groupkeeper_group_lag", group="billing") is None
            assert value(text, "groupkeeper_group_lag", group="audit") == 0
            broker.stop()
            text = served.until(lambda text: value(text, "groupkeeper_cluster_up") == 0 and "audit" not in text)
            down_s = value(text, "groupkeeper_cluster_down_since_timestamp_seconds")
            succeeded_s = value(text, "groupkeeper_collector_succeeded_timestamp_seconds")
            assert down_s is not None
            assert succeeded_s is not None
            assert succeeded_s < down_s <= time.time()
            # Pages have what was known last.
            group = served.get("/group?cluster=default&group=audit")
            assert group.status == 200
            assert "The numbers below are old: as of " in group.text
            assert served.get("/group?cluster=default&group=search").status == 404  # that it was deleted is known
            assert served.get("/groups.csv?cluster=default").status == 503
            assert "; since 20" in served.get("/readyz").text


def test_what_is_left_out_is_said(broker: BackgroundBroker) -> None:
    where = ("--bootstrap-server", f"prod={broker.bootstrap_servers}")
    with serving(*where, "--group", "no-such-*", "--group", "search") as served:
        served.until_ready()
        assert served.process.stderr is not None
        assert "cluster prod is up" in served.process.stderr.readline()
        assert "cluster prod: nothing matches --group 'no-such-*'" in served.process.stderr.readline()
        ready = served.get("/readyz").text
        assert (", 2 more left out; nothing matches --group 'no-such-*'\n") in ready
        assert value(served.get("/metrics").text, "groupkeeper_cluster_left_out_groups", cluster="prod") == 2
        assert served.get("/groups.csv?cluster=prod").headers["x-groups-left-out"] == "2"
        away = served.get("/group?cluster=prod&group=billing")
        assert (away.status, "This server leaves out billing" in away.text) == (404, True)
        assert "There is no group &#x27;nobody&#x27; in prod now" in served.get("/group?cluster=prod&group=nobody").text


def test_a_refused_login_is_said_once(tmp_path: Path) -> None:
    with BackgroundBroker(users={"alice": "right"}) as broker:
        properties = tmp_path / "client.properties"
        lines = [f"{name}={value}\n" for name, value in broker.client_properties("alice").items()]
        properties.write_text("".join(lines).replace('"right"', '"wrong"'))
        where = ("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--command-config", str(properties))
        with serving(*where, "--interval", "100ms") as served:
            served.until(lambda text: (value(text, "groupkeeper_collector_failed_polls_total") or 0) >= 3)
            served.process.terminate()
            assert served.process.stderr is not None
            (row,) = served.process.stderr
            assert "cluster prod: " in row
            assert "check username and password" in row


def test_wrong_usage_is_said_before_anything_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in {
        ("--bootstrap-server", "a=h:1", "--bootstrap-server", "a=h:2"): "two clusters are called 'a'",
        ("--bootstrap-server", "=h:1"): "expected a name before '='",
        ("--bootstrap-server", "a=h"): "h",
        ("--metric-names", "burrow"): "expected some of groupkeeper, kminion",
        ("--series", "records"): "expected some of partitions, members",
        ("--port", "65536"): "expected a port",
        ("--group", "(", "--regex", "--bootstrap-server", "h:1"): "argument --group: '(' is not a regular expression",
        ("--context", "nowhere"): "there is no context 'nowhere'",
        (): "no cluster is named",
    }.items():
        with pytest.raises(SystemExit) as refused:
            main(["serve", *words])
        assert (refused.value.code, said in capsys.readouterr().err) == (2, True), words
    damaged = tmp_path / "history"
    damaged.write_text("no database " * 99)
    assert main(["serve", "--bootstrap-server", "h:1", "--history", str(damaged)]) == 1
    assert "not a database" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "--bootstrap-server", "h:1", "--history", "off", "--port", port]) == 1
        assert f"cannot listen at 127.0.0.1:{port}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--user-header", "X-User"], "--trusted-proxy is missing"),
        (["--trusted-proxy", "10.0.0.1"], "--user-header is missing"),
        (["--trusted-proxy", "10.0.0.1/8", "--user-header", "X-User"], "argument --trusted-proxy: "),
        (["--user-header", "X: y"], "is not the name of a header"),
        (["--roles", "roles.toml"], "users have names only with --token-file, --oidc or --user-header"),
        (["--token-file", "nowhere"], "argument --token-file: cannot read 'nowhere': No such file"),
        (["--host", "0.0.0.0", "--allow-changes"], "add --token-file, --oidc or --user-header"),
    ],
)
def test_what_does_not_go_together(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["serve", "--port", "0", "--history", "off", "--bootstrap-server", "127.0.0.1:1", *words])
    assert refused.value.code == 2
    assert said in capsys.readouterr().err


def test_a_peer_is_not_who_it_says_and_a_token_is_made_for_changes(broker: BackgroundBroker, tmp_path: Path) -> None:
    where = ("--bootstrap-server", broker.bootstrap_servers)
    with serving(*where, "--user-header", "X-User", "--trusted-proxy", "10.0.0.0/8") as served:
        for header in ({"X_Forwarded_For": "10.0.0.1"}, {"Forwarded": "for=10.0.0.1"}):
            assert served.get("/", X_User="alice", **header).status == 401
    with serving(*where, "--allow-changes") as served:
        assert served.process.stderr is not None
        said = served.process.stderr.readline()
        assert said.startswith(f"to change something, log in at http://{served.address}/login with ")
        front = served.get("/").text
        assert "log in" in front
        assert "read only" not in front + served.get("/login").text + served.get("/words").text
    tokens = tmp_path / "tokens"
    tokens.write_text("alice token-of-alice-0123456789")
    with serving(*where, "--allow-changes", "--token-file", str(tokens)) as served:
        stranger = served.get("/")
        assert (stranger.status, "<title>Log in</title>" in stranger.text) == (401, True)
        assert "read only" not in stranger.text + served.get("/nowhere").text
