"""The real Apache Kafka from Maven Central, to compare with: fetch it, start one broker, run the official tools.

    python tools/apache_kafka.py fetch 4.4.0
    python tools/apache_kafka.py start 4.4.0 [--port N] [--directory DIR] [--property key=value ...]
    python tools/apache_kafka.py tool 4.4.0 consumer-groups --bootstrap-server 127.0.0.1:9092 --list

Needs java (17 or later for Kafka 4) and mvn, which take their repository from the machine's own settings. The jars lie
in `$KAFKA_CACHE/VERSION/jars` (default `~/.cache/apache-kafka`) and are fetched once. Everything listens on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import base64
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

VERSION = "4.4.0"
"""The release that the broker is compared with."""

MIRROR_MAKER = "4.3.1"
"""The newest release whose MirrorMaker is in Maven's repositories."""

NEWEST = "4.4.0"
"""The newest release: its messages are spoken, and its tools' output is printed."""

LOG4J = "2.24.3"
START_TIMEOUT_S = 90.0

TOOLS = {
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "org.apache.kafka.tools.ConfigCommand",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "verifiable-share-consumer": "org.apache.kafka.tools.VerifiableShareConsumer",
}

# Cheap to start rather than quick when warm: every tool call is a JVM of its own.
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8")

# What Apache's own scripts (kafka-run-class.sh) start Java with: for measuring.
OFFICIAL_JVM = ("-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
                "-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true")  # fmt: skip


class ApacheKafkaUnavailable(RuntimeError):
    """Java, Maven, the jars, or the broker could not be had; the message says which and why."""


def why_unavailable() -> str | None:
    """The reason why Apache Kafka cannot run on this machine, or None when it can."""
    missing = [name for name in ("java", "mvn") if shutil.which(name) is None]
    return f"Apache Kafka needs {' and '.join(missing)} on PATH" if missing else None


def cache_folder(version: str = VERSION) -> Path:
    return Path(os.environ.get("KAFKA_CACHE") or "~/.cache/apache-kafka").expanduser() / version


def _release(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def _pom_of_a_release(version: str) -> str:
    scala = "2.13" if _release(version) >= (2, 4) else "2.12"
    wanted = [("org.apache.kafka", f"kafka_{scala}", version), ("org.apache.kafka", "kafka-tools", version)]
    if int(version.split(".")[0]) >= 4:
        # Before 4.0 the artefacts bring a logging binding of their own.
        wanted += [("org.apache.logging.log4j", f"log4j-{name}", LOG4J) for name in ("slf4j-impl", "core")]
    if (1, 0) <= _release(version) < (2, 4):
        wanted.append(("org.apache.zookeeper", "zookeeper", "3.5.9"))  # theirs breaks on Java 14 and later
    if _release(version) < (1, 0):
        # Java had it when they came out.
        wanted.append(("javax.xml.bind", "jaxb-api", "2.3.1"))
    return _pom(wanted)


def _pom(wanted: Sequence[tuple[str, str, str]]) -> str:
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{v}</version></dependency>\n"
        for group, name, v in wanted
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>x</groupId><artifactId>x</artifactId><version>1</version>\n"
        f"<dependencies>\n{dependencies}</dependencies></project>\n"
    )


LOGGING = """rootLogger.level=WARN
rootLogger.appenderRef.c.ref=C
appender.c.type=Console
appender.c.name=C
appender.c.target=SYSTEM_ERR
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=[%d] %p %m (%c)%n
"""

# For the releases before 4.0.
LOGGING_1 = """log4j.rootLogger=WARN, c
log4j.appender.c=org.apache.log4j.ConsoleAppender
log4j.appender.c.target=System.err
log4j.appender.c.layout=org.apache.log4j.PatternLayout
log4j.appender.c.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


def fetch(version: str = VERSION) -> Path:
    """The folder of the official jars of `version`; downloads them with Maven the first time.

    Raises ApacheKafkaUnavailable.
    """
    return _fetched(cache_folder(version), _pom_of_a_release(version), f"Apache Kafka {version}")


def fetch_streams(version: str = VERSION) -> Path:
    """The folder of the jars of Kafka Streams, and of what it needs. Raises ApacheKafkaUnavailable."""
    pom = _pom([("org.apache.kafka", "kafka-streams", version)])
    return _fetched(cache_folder(f"streams-{version}"), pom, f"Kafka Streams {version}")


def fetch_mirror_maker(version: str = MIRROR_MAKER) -> Path:
    """The folder of the jars of MirrorMaker 2, and of what it needs. Raises ApacheKafkaUnavailable."""
    pom = _pom([("org.apache.kafka", "connect-mirror", version)])
    return _fetched(cache_folder(f"mirror-{version}"), pom, f"MirrorMaker {version}")


def fetch_spring(version: str = "4.1.2") -> Path:
    """The folder of the jars of Spring Kafka, and of what it needs. Raises ApacheKafkaUnavailable."""
    pom = _pom([("org.springframework.kafka", "spring-kafka", version)])
    return _fetched(cache_folder(f"spring-{version}"), pom, f"Spring Kafka {version}")


def fetch_flink(version: str = "2.2.0", connector: str = "5.0.0-2.2") -> Path:
    """The folder of the jars of Flink with its connector to Kafka, and of what they need. Raises
    ApacheKafkaUnavailable.
    """
    wanted = [("org.apache.flink", name, version) for name in ("flink-clients", "flink-connector-base")]
    pom = _pom([*wanted, ("org.apache.flink", "flink-connector-kafka", connector)])
    return _fetched(cache_folder(f"flink-{version}"), pom, f"Flink {version}")


def _fetched(folder: Path, pom: str, what: str) -> Path:
    jars = folder / "jars"
    if (folder / ".complete").exists():
        return jars
    if reason := why_unavailable():
        raise ApacheKafkaUnavailable(reason)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pom.xml").write_text(pom)
    (folder / "log4j2.properties").write_text(LOGGING)
    run = subprocess.run(
        ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    (folder / "fetch.log").write_text(run.stdout)
    if run.returncode:
        raise ApacheKafkaUnavailable(f"mvn could not fetch {what}, see {folder / 'fetch.log'}")
    (folder / ".complete").touch()
    return jars


def java_command(
    main_class: str, *args: str, version: str = VERSION, heap: str = "512m", jvm: Sequence[str] = JVM
) -> list[str]:
    """The command line of a main class of that version's jars."""
    jars = fetch(version)
    logging = f"-Dlog4j2.configurationFile={cache_folder(version) / 'log4j2.properties'}"
    if _release(version) < (4, 0):
        old = cache_folder(version) / "log4j.properties"
        old.write_text(LOGGING_1)
        logging = f"-Dlog4j.configuration={old.as_uri()}"
    return ["java", f"-Xmx{heap}", *jvm, "-cp", f"{jars}/*", logging, main_class, *args]


def tool_command(
    name: str, *args: str, version: str = VERSION, heap: str = "512m", jvm: Sequence[str] = JVM
) -> list[str]:
    """The command line of an official tool, named as in TOOLS (`kafka-` may stand in front)."""
    main_class = TOOLS[name.removeprefix("kafka-")]
    if name == "dump-log" and _release(version) < (4, 2):
        main_class = "kafka.tools.DumpLogSegments"
    if name.removeprefix("kafka-") == "configs" and _release(version) < (4, 4):
        main_class = "kafka.admin.ConfigCommand"
    return java_command(main_class, *args, version=version, heap=heap, jvm=jvm)


def run_tool(
    name: str, *args: str, version: str = NEWEST, stdin: str | None = None, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run an official tool to its end. Raises subprocess.TimeoutExpired after `timeout` seconds."""
    env = {k: v for k, v in os.environ.items() if k not in ("JAVA_TOOL_OPTIONS", "KAFKA_OPTS")}
    env.update(LC_ALL="C.UTF-8", TZ="UTC", COLUMNS="80")
    return subprocess.run(
        tool_command(name, *args, version=version),
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=env,
    )


def free_port(count: int = 1) -> int:
    """A TCP port of 127.0.0.1 that the operating system has just found to be free, with those that follow it."""
    while True:
        with ExitStack() as taken:
            port = 0
            try:
                for number in range(count):
                    one = taken.enter_context(socket.socket())
                    one.bind(("127.0.0.1", port + number if port else 0))
                    port = port or int(one.getsockname()[1])
            except OSError:
                continue
            return port


def answers_metadata(host: str, port: int, timeout: float = 2.0) -> bool:
    """Whether a broker there answers a Metadata request and lists at least one broker."""
    request = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", 0)  # Metadata v1, no client id, no topic
    try:
        with socket.create_connection((host, port), timeout=timeout) as s:
            s.settimeout(timeout)
            s.sendall(struct.pack(">i", len(request)) + request)
            answer = s.makefile("rb").read(12)  # size, correlation id, number of brokers
    except OSError:
        return False
    return len(answer) == 12 and int(struct.unpack(">i", answer[8:])[0]) > 0


class ApacheKafka:
    """One node (broker and KRaft controller; before 3.3 a broker, and a ZooKeeper beside it) in a process of its own.

    `directory` None means a temporary one that `stop` removes. `properties` go over the defaults below. `listeners` are
    further ones, the security protocol by the name; `address` has their addresses. `format_options` go to the storage
    tool: `--add-scram`, `--feature`. `jvm` are options of the broker's Java. After `kill` or `stop(keep=True)` the same
    object can be started again on the same directory and port.
    """

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        version: str = VERSION,
        port: int | None = None,
        directory: Path | None = None,
        listeners: Mapping[str, str] | None = None,
        format_options: Sequence[str] = (),
        jvm: Sequence[str] = JVM,
    ) -> None:
        self.version = version
        self._protocols = dict(listeners or {})
        self._ports = {name: free_port() for name in self._protocols}
        self._format_options = format_options
        self._jvm = jvm
        self._zookeeper: subprocess.Popen[bytes] | None = None
        self.port = port or free_port()
        self._controller_port = free_port()
        self._cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A", 1)
        self._is_temporary = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="apache-kafka-"))
        self._properties = dict(properties or {})
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The broker's process, while it runs."""
        assert self._child is not None
        return self._child.pid

    def address(self, listener: str) -> str:
        """Where one of the further `listeners` is: host:port."""
        return f"127.0.0.1:{self._ports[listener]}"

    @property
    def has_zookeeper(self) -> bool:
        return _release(self.version) < (3, 3)

    @property
    def zookeeper(self) -> str:
        """Where ZooKeeper is, of a release that has it."""
        return f"127.0.0.1:{self._controller_port}"

    @property
    def log(self) -> Path:
        return self.directory / "broker.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def _settings(self) -> dict[str, str]:
        protocols = {"PLAINTEXT": "PLAINTEXT", **self._protocols}
        listeners = [f"PLAINTEXT://127.0.0.1:{self.port}"]
        listeners += [f"{name}://127.0.0.1:{port}" for name, port in self._ports.items()]
        controller = f"127.0.0.1:{self._controller_port}"  # or ZooKeeper's
        if self.has_zookeeper:
            settings = {"broker.id": "1", "zookeeper.connect": controller, "listeners": ",".join(listeners)}
        else:
            protocols["CONTROLLER"] = "PLAINTEXT"
            settings = {
                "process.roles": "broker,controller",
                "node.id": "1",
                "controller.quorum.voters": f"1@{controller}",
                "listeners": ",".join([*listeners, f"CONTROLLER://{controller}"]),
                "controller.listener.names": "CONTROLLER",
            }
        settings |= {
            "advertised.listeners": ",".join(listeners),
            "listener.security.protocol.map": ",".join(f"{name}:{each}" for name, each in protocols.items()),
            "log.dirs": str(self.directory / "logs"),
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "4",
        }
        for key in ("offsets.topic.replication.factor", "transaction.state.log.replication.factor",
                    "transaction.state.log.min.isr", "share.coordinator.state.topic.replication.factor",
                    "share.coordinator.state.topic.min.isr"):  # fmt: skip
            settings[key] = "1"
        return settings | self._properties

    def another_node(self, node_id: int = 2) -> ApacheKafka:
        """Another node of this cluster, a broker that is no controller; it is started and stopped by itself."""
        node = ApacheKafka(version=self.version, jvm=self._jvm)
        node._cluster_id = self._cluster_id
        node._properties = {
            **self._properties,
            "process.roles": "broker",
            "node.id": str(node_id),
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "listeners": f"PLAINTEXT://{node.bootstrap_servers}",
        }
        return node

    def start(self, timeout: float = START_TIMEOUT_S) -> None:
        """Start and wait until clients are answered. Raises ApacheKafkaUnavailable with the end of the broker's log."""
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "server.properties"
        config.write_text("".join(f"{k}={v}\n" for k, v in self._settings().items()))
        if self.has_zookeeper:
            self._start_zookeeper()
        elif not (self.directory / "logs" / "meta.properties").exists():
            self._format(config)
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                java_command("kafka.Kafka", str(config), version=self.version, heap="1g", jvm=self._jvm),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + timeout
        while not answers_metadata("127.0.0.1", self.port):
            if self._child.poll() is not None or time.monotonic() > deadline:
                self.kill()
                end = self.log.read_text(errors="replace")[-2000:]
                raise ApacheKafkaUnavailable(f"Apache Kafka {self.version} did not come up:\n{end}")
            time.sleep(0.1)

    def _start_zookeeper(self) -> None:
        config = self.directory / "zookeeper.properties"
        settings = {
            "dataDir": str(self.directory / "zookeeper"),
            "clientPort": str(self._controller_port),
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
        }
        config.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
        command = java_command(
            "org.apache.zookeeper.server.ZooKeeperServerMain", str(config), version=self.version, heap="256m"
        )
        with (self.directory / "zookeeper.log").open("ab") as log:
            self._zookeeper = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def _format(self, config: Path) -> None:
        command = java_command("kafka.tools.StorageTool", "format", "-t", self._cluster_id, "-c", str(config),
                               *self._format_options, version=self.version)  # fmt: skip
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if run.returncode:
            raise ApacheKafkaUnavailable(f"cannot format the directory of Apache Kafka: {run.stdout}{run.stderr}")

    def run_tool(
        self, name: str, *args: str, stdin: str | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run an official tool of the same version on this broker (`--bootstrap-server` is added in front)."""
        return run_tool(name, "--bootstrap-server", self.bootstrap_servers, *args,
                        version=self.version, stdin=stdin, timeout=timeout)  # fmt: skip

    def stop(self, *, keep: bool = False, timeout: float = 30) -> None:
        """SIGTERM, and SIGKILL after `timeout` seconds; a temporary directory goes too unless `keep`."""
        if self._child is not None and self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
        self._child = None
        self._stop_zookeeper()
        if self._is_temporary and not keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def kill(self) -> None:
        """SIGKILL; the directory stays."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
        self._child = None
        self._stop_zookeeper()

    def _stop_zookeeper(self) -> None:
        if self._zookeeper is not None:
            self._zookeeper.kill()
            self._zookeeper.wait()
        self._zookeeper = None

    def wait(self) -> int:
        """Wait for the broker to end by itself; its exit status."""
        assert self._child is not None
        return self._child.wait()


def _start(version: str, args: argparse.Namespace) -> int:
    pairs = dict(pair.split("=", 1) for pair in args.property)
    broker = ApacheKafka(pairs, version=version, port=args.port, directory=args.directory)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # the broker is stopped all the same
    with broker:
        print(
            f"Apache Kafka {version} is ready at {broker.bootstrap_servers}, its files in {broker.directory}",
            flush=True,
        )
        try:
            return broker.wait()
        except KeyboardInterrupt:
            return 0


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch", help="fetch the jars and print their folder").add_argument("version")
    start = commands.add_parser("start", help="run a broker until Ctrl-C, or SIGTERM")
    start.add_argument("version")
    start.add_argument("--port", type=int, help="default: a free one")
    start.add_argument("--directory", type=Path, help="keep the broker's files here (default: a temporary folder)")
    start.add_argument("--property", action="append", default=[], metavar="KEY=VALUE")
    tool = commands.add_parser("tool", help="run an official tool: " + ", ".join(sorted(TOOLS)))
    tool.add_argument("version")
    tool.add_argument("name", choices=sorted(TOOLS))
    tool.add_argument("args", nargs=argparse.REMAINDER)
    args = parser.parse_args(argv)
    try:
        if args.command == "fetch":
            print(fetch(args.version))
            return 0
        if args.command == "start":
            return _start(args.version, args)
        return subprocess.run(tool_command(args.name, *args.args, version=args.version)).returncode
    except ApacheKafkaUnavailable as unavailable:
        print(unavailable, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
