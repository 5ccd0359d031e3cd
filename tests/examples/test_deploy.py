"""examples/deploy: what its files start are commands and options that there are, and its chart is one for Helm."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.web.serving import COMMAND

from groupkeeper.cli.framework.commands import parser

DEPLOY = Path(__file__).resolve().parents[2] / "examples" / "deploy"
HELM = os.environ.get("HELM") or shutil.which("helm")


def started() -> Iterator[list[str]]:
    """The words of each command, without its program."""
    unit = (DEPLOY / "groupkeeper-serve.service").read_text().replace("\\\n", " ")
    for line in re.findall(r"^ExecStart=(.*)", unit, re.MULTILINE):
        yield shlex.split(line)[1:]
    for line in re.findall(r"^\*/5 .*", (DEPLOY / "groupkeeper-check.cron").read_text(), re.MULTILINE):
        yield line.split(" groupkeeper ")[-1].split("/bin/groupkeeper ")[-1].split()
    compose = (DEPLOY / "compose.yaml").read_text()
    for words in re.findall(r"command:\s*(\[.*?\])", compose, re.DOTALL):
        yield json.loads(words)
    for words in re.findall(r'\["CMD", "groupkeeper", (.*?)\]', compose):
        yield json.loads(f"[{words}]")


@pytest.mark.parametrize("words", list(started()), ids=" ".join)
def test_the_command_and_its_options_exist(words: list[str]) -> None:
    parser().parse_args(words)


def test_the_unit(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze is not here")
    unit = tmp_path / "groupkeeper-serve.service"
    text = (DEPLOY / unit.name).read_text()
    unit.write_text(text.replace("/opt/groupkeeper/bin/groupkeeper", COMMAND))
    found = subprocess.run(
        [verify, "verify", "--man=no", unit], capture_output=True, text=True, check=False, timeout=30
    )
    assert "groupkeeper" not in found.stderr, found.stderr
    unit.write_text(text.replace("ProtectHome=yes", "ProtectHomes=yes"))
    found = subprocess.run(
        [verify, "verify", "--man=no", unit], capture_output=True, text=True, check=False, timeout=30
    )
    assert "groupkeeper" in found.stderr  # it can find something


@pytest.mark.skipif(HELM is None, reason="helm is not here")
@pytest.mark.parametrize("full", [False, True])
def test_the_chart(tmp_path: Path, full: bool) -> None:
    assert HELM is not None
    values = tmp_path / "values.yaml"
    values.write_text(
        "clusters: {prod: 'kafka-1:9092,kafka-2:9092', dr: 'kafka-9:9092'}\noptions: [--series, partitions]\n"
        'rules: |\n  [[rule]]\n  name = "down"\n  cluster_unreachable = true\n'
        "secret: {name: kafka, commandConfig: client.properties}\nstorage: {className: fast}\n"
        if full
        else "{}\n"
    )
    for words in (["lint", "--strict"], ["template", "watch"]):
        done = subprocess.run(
            [HELM, *words, DEPLOY / "helm", "--values", values], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
    arguments = re.findall(r"^            - (.*)", done.stdout.split("args:")[1].split("ports:")[0], re.MULTILINE)
    properties = tmp_path / "client.properties"
    properties.touch()
    words = [each.strip('"').replace("/secrets/client.properties", str(properties)) for each in arguments]
    options = parser().parse_args(words)
    assert len(options.bootstrap_server) == (2 if full else 1)
    assert (options.rules is not None, "kind: ConfigMap" in done.stdout) == (full, full)
