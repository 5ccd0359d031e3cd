"""A real Prometheus scrapes `groupkeeper serve` and alerts by its rules; a real Alertmanager takes what rules tell."""

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.acts import commit
from tests.live.stage import arrange
from tests.web.serving import serving
from tools.apache_kafka import free_port

from groupkeeper.testing.background import BackgroundBroker

HERE = Path(__file__).parent
RULES = Path(__file__).parents[3] / "src/groupkeeper/web/files/prometheus-rules.yaml"
PATIENCE_S = 40.0

pytestmark = pytest.mark.conformance


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on PATH (Debian has it in prometheus and prometheus-alertmanager)")
    return found


@contextmanager
def running(*command: str) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


def until(url: str, is_there: Callable[[Any], bool]) -> Any:
    """The JSON there, once it is as wanted."""
    deadline, found = time.monotonic() + PATIENCE_S, None
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                found = json.load(answer)
        except OSError:
            found = None
        if found is not None and is_there(found):
            return found
        time.sleep(0.1)
    raise AssertionError(f"{url}: {found}")


def test_the_file_is_one_of_rules() -> None:
    run = subprocess.run(
        [program("promtool"), "check", "rules", str(RULES)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_golden_sequence_of_alerts(tmp_path: Path) -> None:
    text = (HERE / "goldens/prometheus-rules-test.yaml").read_text().replace("RULES", str(RULES))
    path = tmp_path / "test.yaml"
    path.write_text(text)
    run = subprocess.run([program("promtool"), "test", "rules", str(path)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_prometheus_scrapes_and_alerts(tmp_path: Path) -> None:
    prometheus, promtool = program("prometheus"), program("promtool")
    with BackgroundBroker() as broker:
        arrange(broker.bootstrap_servers)
        with serving("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--interval", "200ms",
                     "--series", "partitions,members") as served:  # fmt: skip
            text = served.until(lambda text: "groupkeeper_group_lag{" in text)
            checked = subprocess.run(
                [promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False
            )
            assert checked.returncode == 0, checked.stdout + checked.stderr
            config = tmp_path / "prometheus.yml"
            scraped = [{"job_name": "groupkeeper", "static_configs": [{"targets": [served.address]}]}]
            every = {"scrape_interval": "500ms", "evaluation_interval": "500ms"}
            # JSON is YAML, too.
            config.write_text(json.dumps({"global": every, "rule_files": [str(RULES)], "scrape_configs": scraped}))
            port = free_port()
            with running(prometheus, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}",
                         f"--web.listen-address=127.0.0.1:{port}"):  # fmt: skip
                api = f"http://127.0.0.1:{port}/api/v1"
                lag = urllib.parse.quote('groupkeeper_group_lag{cluster="prod",group="search"}')
                found = until(f"{api}/query?query={lag}", lambda answer: bool(answer["data"]["result"]))
                assert [series["value"][1] for series in found["data"]["result"]] == ["8"]
                [target] = until(f"{api}/targets", lambda _: True)["data"]["activeTargets"]
                assert (target["health"], target["lastError"]) == ("up", "")
                until(
                    f"{api}/alerts",
                    lambda answer: any(
                        each["labels"]["alertname"] == "KafkaGroupBehind" and each["labels"]["group"] == "search"
                        for each in answer["data"]["alerts"]
                    ),
                )


def test_alertmanager_takes_what_fires_and_what_is_resolved(tmp_path: Path) -> None:
    alertmanager = program("prometheus-alertmanager")
    port = free_port()
    (tmp_path / "alertmanager.yml").write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    (tmp_path / "rules.toml").write_text(
        '[[rule]]\nname = "behind"\nmax_lag = 7\nowner = "team search"\n'
        f'[webhook.oncall]\nurl = "http://127.0.0.1:{port}"\ntemplate = "alertmanager"\nrepeat = "1s"\n'
    )
    with (
        running(alertmanager, f"--config.file={tmp_path / 'alertmanager.yml'}", f"--storage.path={tmp_path / 'am'}",
                f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="),
        BackgroundBroker() as broker,
    ):  # fmt: skip
        arrange(broker.bootstrap_servers)
        alerts = f"http://127.0.0.1:{port}/api/v2/alerts"
        until(alerts, lambda found: found == [])
        words = ("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--interval", "200ms")
        with serving(*words, "--rules", str(tmp_path / "rules.toml")):
            [alert] = until(alerts, bool)
            assert alert["labels"] == {
                "alertname": "behind",
                "cluster": "prod",
                "group": "search",
                "owner": "team search",
                "severity": "warning",
                "source": "groupkeeper",
            }
            where = f"--bootstrap-server {broker.bootstrap_servers}"
            assert alert["annotations"]["command"] == f"groupkeeper groups describe {where} search"
            commit(broker.bootstrap_servers, "search", {("orders", 0): 8})
            until(alerts, lambda found: found == [])
