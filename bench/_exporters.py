"""Other exporters of consumer groups, how each is started, and an Apache Kafka that counts what is asked of it."""

from __future__ import annotations

import csv
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tools.apache_kafka import OFFICIAL_JVM, ApacheKafka, free_port, java_command

Command = Callable[[str, int, Path], tuple[list[str], Mapping[str, str]]]
"""The words and the environment of a program, for brokers, the port that it listens at, and its folder."""

_COUNTED = "kafka.network:type=RequestMetrics,name=RequestsPerSec,request=*,version=*"
_NOT_OF_CLIENTS = ("BrokerHeartbeat", "BrokerRegistration")


class CountingKafka(ApacheKafka):
    """One broker with the options of Java that Apache's own scripts give it, and JMX."""

    def __init__(self) -> None:
        self._jmx = free_port()
        flags = (f"port={self._jmx}", "authenticate=false", "ssl=false", "local.only=true")
        jmx = ["-Djava.rmi.server.hostname=127.0.0.1", *(f"-Dcom.sun.management.jmxremote.{flag}" for flag in flags)]
        super().__init__(jvm=[*OFFICIAL_JVM, *jmx])

    def requests(self) -> int:
        """As many as clients have made so far."""
        url = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{self._jmx}/jmxrmi"
        words = ("--jmx-url", url, "--object-name", _COUNTED, "--attributes", "Count", "--one-time")
        run = subprocess.run(
            java_command("org.apache.kafka.tools.JmxTool", *words), capture_output=True, text=True, check=True
        )
        names, counts = csv.reader([line for line in run.stdout.splitlines() if line.count(",") > 2])
        return sum(
            int(float(count))
            for name, count in zip(names, counts, strict=True)
            if "Count" in name and not any(each in name for each in _NOT_OF_CLIENTS)
        )


def _kafka_exporter(servers: str, port: int, folder: Path) -> tuple[list[str], Mapping[str, str]]:
    program = os.environ["KAFKA_EXPORTER"]
    return [program, f"--kafka.server={servers}", f"--web.listen-address=127.0.0.1:{port}"], {}


def _kminion(mode: str) -> Command:
    def command(servers: str, port: int, folder: Path) -> tuple[list[str], Mapping[str, str]]:
        return [os.environ["KMINION"]], {
            "KAFKA_BROKERS": servers,
            "EXPORTER_HOST": "127.0.0.1",
            "EXPORTER_PORT": str(port),
            "MINION_CONSUMERGROUPS_SCRAPEMODE": mode,
            "MINION_LOGDIRS_ENABLED": "false",
        }

    return command


def _burrow(servers: str, port: int, folder: Path) -> tuple[list[str], Mapping[str, str]]:
    (folder / "burrow.toml").write_text(
        f"""
[general]
pidfile = "{folder}/burrow.pid"
[logging]
level = "error"
[client-profile.it]
client-id = "burrow"
kafka-version = "2.8.0"
[cluster.it]
class-name = "kafka"
servers = ["{servers}"]
client-profile = "it"
offset-refresh = 10
[consumer.it]
class-name = "kafka"
cluster = "it"
servers = ["{servers}"]
client-profile = "it"
offsets-topic = "__consumer_offsets"
start-latest = false
[httpserver.it]
address = "127.0.0.1:{port}"
"""
    )
    return [os.environ["BURROW"], "--config-dir", str(folder)], {}


OTHERS: Mapping[str, Sequence[tuple[str, Command, bytes]]] = {
    "KAFKA_EXPORTER": [("kafka_exporter", _kafka_exporter, b"kafka_consumergroup_lag{")],
    "KMINION": [
        ("kminion (adminApi)", _kminion("adminApi"), b"kminion_kafka_consumer_group_topic_lag{"),
        ("kminion (offsetsTopic)", _kminion("offsetsTopic"), b"kminion_kafka_consumer_group_topic_lag{"),
    ],
    "BURROW": [("Burrow", _burrow, b"burrow_kafka_consumer_partition_lag{")],
}
"""By the variable that names the program: each way to run it, and what is in its metrics once it knows the groups."""
