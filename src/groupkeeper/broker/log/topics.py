"""The topics of the broker: a registry on disk, and the partition logs.

The registry is a journal of JSON lines (create, grow, configure, delete), appended before the response; compacted at
the start. The first append creates a partition's directory, so empty partitions have no files.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from logging import getLogger
from typing import Any

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.log.long_reads import LongReads
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.segment_files import PARTITION_METADATA, topic_id_of
from groupkeeper.broker.log.topic_names import require_valid_name
from groupkeeper.broker.placement.placements import Placements, Replicas
from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.topic import TopicConfig
from groupkeeper.broker.storage.directory import StorageDirectory, random_uuid
from groupkeeper.broker.storage.journal import registry
from groupkeeper.broker.storage.offset_checkpoint import OffsetCheckpoint
from groupkeeper.broker.storage.open_files import OpenFiles
from groupkeeper.protocol import INTERNAL_TOPICS, METADATA_TOPIC, errors

_log = getLogger("groupkeeper.broker")

JOURNAL = "topics.journal"
START_OFFSETS = "log-start-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
ENDS = "replication-offset-checkpoint"
_DELETED = ".deleted"
_PARTITION_DIRECTORY = re.compile(r"(?P<partition>.+-\d+?)(?P<aside>(?:\.\d+)?\.deleted)?")
_LONGEST_ASIDE = 200
_REMEMBERED_DELETIONS = 1000


class Topic:
    """A topic and its partition logs.

    Attributes:
        topic_id: 16 bytes.
        partitions: the logs, by partition index.
        config: the effective settings; `config.overrides` are those given to this topic.
    """

    __slots__ = ("config", "name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: bytes, partitions: list[PartitionLog], config: TopicConfig) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions
        self.config = config

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    def partition(self, index: int) -> PartitionLog | None:
        """The log of a partition, or None when there is no such partition."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None


class Topics:
    """All topics, by name and by id.

    Attributes:
        long_reads: reads large batches of all logs. placements: the nodes of all partitions.
        on_created, on_deleted: functions that are called with a new or deleted topic.
        on_changed: functions that are called with a topic whose partitions or settings have changed.
    """

    def __init__(self, directory: StorageDirectory, config: Config, files: OpenFiles, placements: Placements) -> None:
        self.long_reads = LongReads()
        self.placements = placements
        self.on_created: list[Callable[[Topic], None]] = []
        self.on_deleted: list[Callable[[Topic], None]] = []
        self.on_changed: list[Callable[[Topic], None]] = []
        self._directory = directory
        self._config = config
        self._files = files
        self._topic_by_name: dict[str, Topic] = {}
        self._topic_by_id: dict[bytes, Topic] = {}
        self._collisions: dict[str, str] = {}
        self._sorted_names: list[str] | None = None
        self._plain = TopicConfig({}, config)
        self._deleted_ms: dict[str, int] = {}
        self._dropped: dict[bytes, str] = {}
        self._journal = registry(directory, JOURNAL, "topic registry")
        self._start_offsets = self.checkpoint(START_OFFSETS)
        self._recovery_points = self.checkpoint(RECOVERY_POINTS)
        self._ends = self.checkpoint(ENDS)
        self._is_loaded = False
        self._remover = ThreadPoolExecutor(1, "remove-deleted-topics")

    def checkpoint(self, name: str) -> OffsetCheckpoint:
        """The file of this name in the data directory, with an offset for each partition."""
        return OffsetCheckpoint(self._directory.file(name))

    # ------------------------------------------------------------------ looking

    def get(self, name: str) -> Topic | None:
        """The topic with this name, or None."""
        return self._topic_by_name.get(name)

    def by_id(self, topic_id: bytes) -> Topic | None:
        """The topic with this id, or None."""
        return self._topic_by_id.get(topic_id)

    def names(self) -> Sequence[str]:
        """The names of all topics, sorted."""
        if self._sorted_names is None:
            self._sorted_names = sorted(self._topic_by_name)
        return self._sorted_names

    def partition(self, name: str, index: int) -> PartitionLog | None:
        """The log of a partition, or None."""
        topic = self._topic_by_name.get(name)
        return topic.partition(index) if topic is not None else None

    # ------------------------------------------------------------------ changing

    def check_new(self, name: str) -> None:
        """Raises `InvalidRequest`, `InvalidTopicException` or `TopicAlreadyExists` when a topic of that name cannot be
        created.
        """
        if name == METADATA_TOPIC:
            raise errors.InvalidRequest(f"Creation of internal topic {METADATA_TOPIC} is prohibited.")
        require_valid_name(name)
        if name in self._topic_by_name:
            raise errors.TopicAlreadyExists(f"Topic '{name}' already exists.")
        other = self._collisions.get(name.replace(".", "_"))
        if other is not None:
            raise errors.InvalidTopicException(f"Topic '{name}' collides with existing topic: {other}")

    def config_of(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The effective settings with overrides. Raises `InvalidSetting`."""
        return TopicConfig(overrides, self._config) if overrides else self._plain

    def create(
        self, name: str, num_partitions: int, configs: Mapping[str, str] | None = None, replicas: Replicas = 1
    ) -> Topic:
        """Creates a topic. Raises the errors of `check_new`, `InvalidPartitions`, `InvalidSetting`."""
        self.check_new(name)
        if num_partitions <= 0:
            raise errors.InvalidPartitions("Number of partitions was set to an invalid non-positive value.")
        topic_id = random_uuid()
        config = self.config_of(configs or {})
        entry = {"create": name, "id": topic_id.hex(), "partitions": num_partitions, "configs": dict(config.overrides)}
        self._make_room(name, range(num_partitions))
        self.placements.assign(topic_id, range(num_partitions), replicas)
        self._journal.write(entry)
        topic = self._add(name, topic_id, num_partitions, config)
        for callback in self.on_created:
            callback(topic)
        return topic

    def delete(self, name: str) -> None:
        """Removes a topic and its logs. Raises `UnknownTopicOrPartition`, `KafkaStorageError`."""
        topic = self._topic_by_name.get(name)
        if topic is None:
            raise errors.UnknownTopicOrPartition
        self._journal.write({"delete": name})
        del self._topic_by_name[name]
        del self._topic_by_id[topic.topic_id]
        self._collisions.pop(name.replace(".", "_"), None)
        self._sorted_names = None
        for log in topic.partitions:
            log.close("the topic was deleted")
            directory = self._log_directory(name, log.index)
            try:
                self._move_aside(directory)
            except OSError as error:
                # The deletion is in the registry: the next start removes the directory, and no topic is created in its
                # place.
                _log.error("cannot remove %s of a deleted topic: %s", directory, error.strerror)
        self.placements.forget(topic.topic_id)
        self._remember_deleted(name)
        for callback in self.on_deleted:
            callback(topic)

    def _remember_deleted(self, name: str) -> None:
        self._deleted_ms.pop(name, None)
        self._deleted_ms[name] = time.time_ns() // 1_000_000
        while len(self._deleted_ms) > _REMEMBERED_DELETIONS:
            del self._deleted_ms[next(iter(self._deleted_ms))]

    def was_deleted_since(self, name: str, since_ms: int) -> bool:
        """Whether a topic of that name was deleted at or after a time (milliseconds since the epoch)."""
        return self._deleted_ms.get(name, -1) >= since_ms

    def grow(self, topic: Topic, num_partitions: int, replicas: Replicas | None = None) -> None:
        """Adds partitions up to a total, with as many replicas as the others have unless some are given. Raises
        `KafkaStorageError`; then nothing happened.
        """
        added = range(len(topic.partitions), num_partitions)
        self._make_room(topic.name, added)
        self.placements.assign(topic.topic_id, added, replicas or len(topic.partitions[0].placement.replicas))
        self._journal.write({"grow": topic.name, "partitions": num_partitions})
        for index in added:
            topic.partitions.append(self._new_log(topic.name, topic.topic_id, index, topic.config))
        for callback in self.on_changed:
            callback(topic)

    def configure(self, topic: Topic, overrides: Mapping[str, str]) -> None:
        """Replaces the settings given to a topic. Raises `InvalidSetting`."""
        config = self.config_of(overrides)
        self._journal.write({"configure": topic.name, "configs": dict(config.overrides)})
        self._set_config(topic, config)
        for callback in self.on_changed:
            callback(topic)

    def take_defaults(self) -> None:
        """Called after the broker's settings changed: applies the new defaults to topics."""
        self._plain = TopicConfig({}, self._config)
        for topic in self._topic_by_name.values():
            self._set_config(topic, self.config_of(topic.config.overrides))
            for log in topic.partitions:
                log.producers.expiration_ms = self._config.producer_id_expiration_ms

    def _set_config(self, topic: Topic, config: TopicConfig) -> None:
        topic.config = config
        for log in topic.partitions:
            log.config = self.config_at(config, log.placement.leader)

    def take_leader(self, log: PartitionLog) -> None:
        """Called when a partition may have another leader: its settings get that node's defaults."""
        log.config = self.config_at(self._topic_by_name[log.topic].config, log.placement.leader)

    def config_at(self, config: TopicConfig, node: int) -> TopicConfig:
        """The settings of a topic with a node's defaults."""
        broker = self._config
        return TopicConfig(config.overrides, broker.of(node)) if broker.has_own(node) else config

    def _add(self, name: str, topic_id: bytes, num_partitions: int, config: TopicConfig) -> Topic:
        logs = [self._new_log(name, topic_id, index, config) for index in range(num_partitions)]
        topic = Topic(name, topic_id, logs, config)
        self._topic_by_name[name] = topic
        self._topic_by_id[topic_id] = topic
        self._collisions[name.replace(".", "_")] = name
        self._sorted_names = None
        return topic

    def _new_log(self, name: str, topic_id: bytes, index: int, config: TopicConfig) -> PartitionLog:
        directory = self._log_directory(name, index)
        expiration_ms = self._config.producer_id_expiration_ms
        placement = self.placements.of(topic_id, index)
        config = self.config_at(config, placement.leader)
        return PartitionLog(directory, name, topic_id, index, config, self._files, expiration_ms, placement)

    def _log_directory(self, name: str, index: int) -> str:
        return self._directory.file(f"{name}-{index}")

    def _make_room(self, name: str, indexes: Iterable[int]) -> None:
        """Moves leftovers of deleted partitions away from the paths of new partitions, and removes their checkpointed
        offsets.

        Raises `KafkaStorageError`.
        """
        for index in indexes:
            directory = self._log_directory(name, index)
            try:
                self._move_aside(directory)
            except OSError as error:
                raise errors.KafkaStorageError(
                    f"{directory} of a deleted topic is in the way and cannot be moved: {error.strerror}"
                ) from error
        try:
            for checkpoint in (self._start_offsets, self._recovery_points, self._ends):
                checkpoint.forget(name, indexes)
        except OSError as error:
            raise errors.KafkaStorageError(
                f"cannot remove the checkpointed offsets of the deleted topic {name}: {error.strerror}"
            ) from error

    def _move_aside(self, directory: str) -> None:
        """Renames a directory, which frees its name at once, and removes it in the background. Raises OSError."""
        if not os.path.isdir(directory):
            return
        name, _, index = os.path.basename(directory).rpartition("-")
        start = self._directory.file(f"{name[:_LONGEST_ASIDE]}-{index}")  # the longest name has no room for more
        aside, number = start + _DELETED, 0
        while os.path.exists(aside):
            number += 1
            aside = f"{start}.{number}{_DELETED}"
        os.rename(directory, aside)
        self._remover.submit(shutil.rmtree, aside, ignore_errors=True)

    # ------------------------------------------------------------------ on disk

    def load(self) -> None:
        """Reads the registry and recovers every log.

        Raises `InvalidSetting` when the registry is damaged, and when there are logs of topics that are not in it: a
        topic of that name would write over them.
        """
        self._journal.replay(self._replay)
        self._sort_out_directories()  # before the registry is rewritten without deleted topics
        self._journal.begin(self._entries())
        self.placements.begin(self._topic_by_id.keys())
        existing = set(os.listdir(self._directory.path))
        for topic in self._topic_by_name.values():
            for log in topic.partitions:
                log.log_start_offset = self._start_offsets.offsets.get((topic.name, log.index), 0)
                log.recovery_point = self._recovery_points.offsets.get((topic.name, log.index), 0)
                has_files = f"{topic.name}-{log.index}" in existing
                names = os.listdir(self._log_directory(topic.name, log.index)) if has_files else ()
                log.recover(names, self._ends.offsets.get((topic.name, log.index), 0))
        self._is_loaded = True

    def _sort_out_directories(self) -> None:
        """Refuses logs of other brokers; removes leftovers of interrupted deletions.

        A log is ours if the registry has or had its topic: a deletion is journalled before the log is removed. A
        directory without its topic's id (after an early power failure) is recognized by its name.
        """
        foreign: list[str] = []
        leftovers: list[str] = []
        for name in sorted(os.listdir(self._directory.path)):
            path, match = self._directory.file(name), _PARTITION_DIRECTORY.fullmatch(name)
            if match is None or not os.path.isdir(path):
                continue
            topic_id = topic_id_of(path)
            if match["aside"] is not None:
                leftovers += [path] if topic_id is not None else []
            elif topic_id in self._dropped:
                leftovers.append(path)
            elif topic_id is not None and self._is_registered(name, None) and not self._is_registered(name, topic_id):
                raise InvalidSetting(
                    f"{os.path.join(path, PARTITION_METADATA)} has another topic id than {JOURNAL}: if the log is that "
                    "topic's, remove this file; otherwise move the folder away"
                )
            elif not self._is_registered(name, topic_id):
                was_ours = topic_id is None and name.rpartition("-")[0] in self._dropped.values()
                (leftovers if was_ours else foreign).append(path)
        if foreign:
            shown = ", ".join(map(os.path.basename, foreign[:3])) + (
                f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
            )
            raise InvalidSetting(
                f"data directory {self._directory.path} has partition logs of topics that are not in its {JOURNAL}: "
                f"{shown}. They may belong to another broker: use another directory, or move them away. Or the "
                "file has lost entries: restore it from a backup"
            )
        for path in leftovers:
            _log.warning("%s belongs to a deleted topic; removing it", path)
            shutil.rmtree(path, ignore_errors=True)

    def _is_registered(self, directory: str, topic_id: bytes | None) -> bool:
        """Whether a partition's directory belongs to a topic of the registry; None: the directory has no topic id."""
        name, _, index = directory.rpartition("-")
        is_known = self.partition(name, int(index)) is not None
        return is_known and topic_id in (None, self._topic_by_name[name].topic_id)

    def _replay(self, entry: dict[str, Any]) -> None:
        if "create" in entry:
            config = self.config_of(entry["configs"])
            self._add(entry["create"], bytes.fromhex(entry["id"]), entry["partitions"], config)
        elif "delete" in entry:
            topic = self._topic_by_name.pop(entry["delete"])
            del self._topic_by_id[topic.topic_id]
            self._dropped[topic.topic_id] = topic.name
            self._collisions.pop(topic.name.replace(".", "_"), None)
        elif "grow" in entry:
            topic = self._topic_by_name[entry["grow"]]
            for index in range(len(topic.partitions), entry["partitions"]):
                topic.partitions.append(self._new_log(topic.name, topic.topic_id, index, topic.config))
        else:
            self._set_config(self._topic_by_name[entry["configure"]], self.config_of(entry["configs"]))

    def _entries(self) -> Iterator[dict[str, Any]]:
        for topic in self._topic_by_name.values():
            entry = {"create": topic.name, "id": topic.topic_id.hex(), "partitions": len(topic.partitions)}
            yield {**entry, "configs": dict(topic.config.overrides)}

    def truncate(self, log: PartitionLog, offset: int) -> None:
        """Removes a log's records from an offset on, at which a batch begins, and stores that the next start must not
        expect them. If that fails, the partition is unavailable until the next start.
        """
        try:
            for checkpoint in (self._recovery_points, self._ends):
                checkpoint.forget(log.topic, [log.index])
            log.truncate(offset)
        except OSError as error:
            failure = f"cannot remove records of {log.directory} from offset {offset} on: {error.strerror}"
            _log.error("%s", failure)
            log.close(failure)

    def logs(self) -> Iterator[PartitionLog]:
        """The logs of all partitions."""
        for topic in self._topic_by_name.values():
            yield from topic.partitions

    async def write_start_offsets(self) -> None:
        """Writes log start offsets that may differ from the first segment's base offset. Raises OSError."""
        await self._start_offsets.replace_aside(self._offsets("log_start_offset"))

    async def write_recovery_points(self) -> None:
        """Writes the recovery point and the end offset of each log. Raises OSError."""
        await self._recovery_points.replace_aside(self._offsets("recovery_point"))
        await self._ends.replace_aside(self._offsets("log_end_offset"))

    def _offsets(self, attribute: str) -> dict[tuple[str, int], int]:
        """An offset of each log in which it is above 0."""
        found = (((log.topic, log.index), getattr(log, attribute)) for log in self.logs())
        return {tp: offset for tp, offset in found if offset > 0}

    def close(self, *, is_for_good: bool = False) -> None:
        """Closes every log, after pending removals. Unless `is_for_good`, writes the files that the
        next start needs.
        """
        self.long_reads.close()
        self._remover.shutdown()
        if self._is_loaded and not is_for_good:
            self._sync()
        self._is_loaded = False
        for log in self.logs():
            log.close("the broker is stopped")

    def _sync(self) -> None:
        try:
            for log in self.logs():
                if log.failure is None and log.log_end_offset > log.recovery_point:
                    log.sync(is_end=True)
            self._start_offsets.replace(self._offsets("log_start_offset"))
            self._recovery_points.replace(self._offsets("recovery_point"))
            self._ends.replace(self._offsets("log_end_offset"))
            self._directory.mark_clean_stop()
        except OSError as error:
            _log.warning("cannot sync the logs, the next start will read segments: %s", error)
