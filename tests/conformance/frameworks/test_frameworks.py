"""What programs with kafkajs, sarama, Spring Kafka and Flink do with the broker: codecs, groups, transactions, offsets
by time, admin. A tool or a module that is missing is the reason of a skip.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from tests.conformance.broker.test_franz_go import BUILD_S, DOWNLOAD_S, downloaded
from tests.conformance.brokers import RunningBroker
from tools.apache_kafka import ApacheKafkaUnavailable, fetch_flink, fetch_spring

HERE = Path(__file__).parent
KAFKAJS = "kafkajs@2.2.4"
SARAMA = "github.com/IBM/sarama@v1.61.1"
PLAY_S = 400

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(DOWNLOAD_S + BUILD_S + PLAY_S)]


def require(*tools: str) -> None:
    if missing := [each for each in tools if shutil.which(each) is None]:
        pytest.skip(f"needs {' and '.join(missing)} on PATH")


def scenes(command: Sequence[str | Path], broker: RunningBroker, more: Mapping[str, str] = {}) -> dict[str, str]:
    """The scenes that the program plays, with "ok" or what was wrong."""
    env = os.environ | more
    done = subprocess.run([*command, broker.bootstrap_servers], capture_output=True, text=True, timeout=PLAY_S, env=env)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def compiled(name: str, fetch: Callable[[], Path], folder: Path) -> list[str]:
    """The command that runs a program of this folder, without its argument. Skips where its jars cannot be had."""
    require("java", "javac", "mvn")
    try:
        jars = fetch()
    except ApacheKafkaUnavailable as unavailable:
        pytest.skip(str(unavailable))
    subprocess.run(["javac", "-d", folder, "-cp", f"{jars}/*", HERE / f"{name}.java"], check=True, timeout=BUILD_S)
    opened = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "util")]
    return ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *opened, "-cp", f"{folder}:{jars}/*", name]


def test_kafkajs(broker: RunningBroker, tmp_path: Path) -> None:
    require("node", "npm")
    install = ["npm", "install", "--prefix", str(tmp_path), "--ignore-scripts", "--no-audit", "--no-fund", KAFKAJS]
    done = subprocess.run(install, capture_output=True, text=True, timeout=DOWNLOAD_S)
    if done.returncode:
        pytest.skip(f"{KAFKAJS} cannot be fetched: {done.stderr}")
    found = scenes(["node", HERE / "kafkajs.js"], broker, {"NODE_PATH": str(tmp_path / "node_modules")})
    assert found == dict.fromkeys(("codecs", "rebalance", "transactions", "times in one send", "admin"), "ok")


def test_sarama(broker: RunningBroker, tmp_path: Path) -> None:
    """Built inside a copy of the module, whose own go.sum is the lock."""
    module = tmp_path / "module"
    shutil.copytree(downloaded(SARAMA), module, copy_function=shutil.copyfile)
    for folder, _, _ in os.walk(module):
        os.chmod(folder, 0o755)
    (module / "scenes").mkdir()
    shutil.copyfile(HERE / "sarama.go", module / "scenes" / "main.go")
    program = tmp_path / "scenes"
    subprocess.run(["go", "build", "-o", program, "./scenes"], cwd=module, check=True, timeout=BUILD_S)
    found = scenes([program], broker)
    assert found == dict.fromkeys(("codecs", "rebalances", "transactions", "times", "admin"), "ok")


def test_spring_kafka(broker: RunningBroker, tmp_path: Path) -> None:
    found = scenes(compiled("SpringScenes", fetch_spring, tmp_path), broker)
    codecs = [f"codec {name}" for name in ("none", "gzip", "snappy", "lz4", "zstd")]
    others = ["group classic", "group consumer", "exactly once", "seek by time", "admin"]
    assert found == dict.fromkeys(codecs + others, "ok")


def test_flink(broker: RunningBroker, tmp_path: Path) -> None:
    assert scenes(compiled("FlinkJob", fetch_flink, tmp_path), broker) == {"exactly once": "ok"}
