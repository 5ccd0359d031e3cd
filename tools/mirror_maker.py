"""The real MirrorMaker 2 from Maven Central, between two running clusters, to compare with."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.apache_kafka import JVM, MIRROR_MAKER, cache_folder, fetch, fetch_mirror_maker

MAIN_CLASS = "org.apache.kafka.connect.mirror.MirrorMaker"


class MirrorMaker:
    """Copies topics of the cluster `east` to the cluster `west`, in a process of its own.

    `folder` is for its settings and its log. `properties` go over the defaults below.
    """

    def __init__(self, source: str, target: str, folder: Path, properties: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._properties = {
            "clusters": "east, west",
            "east.bootstrap.servers": source,
            "west.bootstrap.servers": target,
            "east->west.enabled": "true",
            "west->east.enabled": "false",
            "east.consumer.isolation.level": "read_committed",
            "emit.checkpoints.interval.seconds": "1",
            "refresh.groups.interval.seconds": "1",
            "refresh.topics.interval.seconds": "2",
            "sync.topic.acls.enabled": "false",
            "emit.heartbeats.enabled": "false",
            "scheduled.rebalance.max.delay.ms": "0",
        }
        for name in ("", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic.", "offset.storage.",
                     "status.storage.", "config.storage."):  # fmt: skip
            self._properties[f"{name}replication.factor"] = "1"
        self._properties |= properties or {}
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    @property
    def log(self) -> Path:
        return self._folder / "mirror-maker.log"

    def start(self) -> None:
        """Start it. Raises ApacheKafkaUnavailable."""
        classpath = f"{fetch_mirror_maker()}/*:{fetch(MIRROR_MAKER)}/*"
        settings = self._folder / "mirror-maker.properties"
        settings.write_text("".join(f"{name} = {value}\n" for name, value in self._properties.items()))
        logging = f"-Dlog4j2.configurationFile={cache_folder() / 'log4j2.properties'}"
        command = ["java", "-Xmx512m", *JVM, "-cp", classpath, logging, MAIN_CLASS, str(settings)]
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def kill(self) -> None:
        """End it without a chance to write down how far it is."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(how)
            try:
                self._child.wait(30)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        self._child = None
