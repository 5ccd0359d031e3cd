"""The broker's data directory: its lock, the cluster's identity, and the atomic replacement of small files."""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import ExitStack, suppress
from logging import getLogger

from google_crc32c import value as crc32c

from groupkeeper.base_error import InvalidSetting
from groupkeeper.java_properties import parse_properties
from groupkeeper.protocol.errors import CoordinatorLoadInProgress
from groupkeeper.protocol.uuids import uuid_text

_log = getLogger("groupkeeper.broker")

META_FILE = "meta.properties"
CLEAN_STOP = ".kafka_cleanshutdown"
PRODUCER_ID_BLOCK = 1000
_CHECKSUM = "# crc32c "


class DirectoryInUse(InvalidSetting):
    """Another broker has locked the directory."""


def random_uuid() -> bytes:
    """16 random bytes, as Kafka's ids: a version 4 uuid whose text form doesn't begin with a dash."""
    while True:
        drawn = bytearray(os.urandom(16))
        drawn[6] = (drawn[6] & 0x0F) | 0x40
        drawn[8] = (drawn[8] & 0x3F) | 0x80
        if not uuid_text(bytes(drawn)).startswith("-"):
            return bytes(drawn)


def replace_file(path: str, text: str, *, survives_power_failure: bool = True, mode: int = 0o666) -> None:
    """Replaces a file atomically: after a crash of this program or the machine it has its old or its new content.

    Without `survives_power_failure`, a crash of the machine may lose both: this is for files that the next start does
    not need. `mode` is subject to the umask. Raises OSError, which names the file.
    """
    temporary = path + ".tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            if survives_power_failure:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if survives_power_failure:
            sync_file(os.path.dirname(path) or ".")
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def with_checksum(text: str) -> str:
    """The text with its checksum appended as a comment; a single line stays a single line."""
    return f"{text}{_CHECKSUM}{crc32c(text.encode()):08x}\n"


def without_checksum(content: bytes) -> str:
    """The text without its checksum, if it has one. Raises ValueError when the text is damaged."""
    text, mark, found = content.decode().rpartition(_CHECKSUM)
    if mark and found.rstrip("\n") != f"{crc32c(text.encode()):08x}":
        raise ValueError("its checksum does not match")
    return text if mark else found


def sync_file(path: str) -> None:
    """Flushes a file to disk; for a directory, its list of files. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class StorageDirectory:
    """A locked data directory.

    Attributes:
        path: its path.
        cluster_id: Kafka's 22-character form; chosen at random when the directory is first used.
        opened: what `close` closes: the registries in it, then the lock.
    """

    def __init__(self, path: str, node_id: int) -> None:
        """Creates the directory if it is absent, and locks it. Raises `DirectoryInUse`, `InvalidSetting`, OSError."""
        self.path = path
        try:
            os.makedirs(path, exist_ok=True)
            lock = os.open(self.file(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InvalidSetting(f"cannot use the data directory {path}: {error.strerror}") from None
        self.opened = ExitStack()
        self.opened.callback(os.close, lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise DirectoryInUse(f"data directory {path} is in use by another broker") from None
        try:
            self.cluster_id = self._identity(node_id)
        except BaseException:
            self.close()
            raise
        self._take_marker()
        self._next_producer_id = 0
        self._producer_ids_end = 0

    def file(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _identity(self, node_id: int) -> str:
        meta = self.file(META_FILE)
        try:
            with open(meta, "rb") as file:
                known = parse_properties(without_checksum(file.read()))
        except FileNotFoundError:
            cluster_id = uuid_text(random_uuid())
            if os.path.exists(self.file("topics.journal")):
                _log.warning("%s is missing: the cluster gets a new id, %s", meta, cluster_id)
            lines = {
                "cluster.id": cluster_id,
                "directory.id": uuid_text(random_uuid()),
                "node.id": node_id,
                "version": 1,
            }
            replace_file(meta, with_checksum("".join(f"{name}={value}\n" for name, value in lines.items())))
            return cluster_id
        except ValueError:
            known = {}
        if known.get("node.id", str(node_id)) != str(node_id):
            raise InvalidSetting(f"{meta} belongs to node.id {known['node.id']}, not {node_id}")
        if not known.get("cluster.id") or "version" not in known:
            raise InvalidSetting(
                f"{meta} is damaged: restore it from a backup, or remove it, and the cluster gets a new cluster.id"
            )
        return known["cluster.id"]

    def _take_marker(self) -> None:
        """Removes the marker of a clean stop, and warns of files that are missing since then."""
        path, names = self.file(CLEAN_STOP), []
        with suppress(FileNotFoundError):
            try:
                with open(path, "rb") as file:
                    names = json.loads(without_checksum(file.read()))["files"]
            except (ValueError, LookupError, TypeError):
                _log.warning("%s is damaged", path)
            os.unlink(path)
        for name in names:
            if not os.path.exists(self.file(name)):
                _log.warning("%s is gone since the broker was stopped, with its content", self.file(name))

    def mark_clean_stop(self) -> None:
        """Writes Apache Kafka's marker that all logs are flushed, with a list of the files. Raises OSError."""
        names = sorted(one.name for one in os.scandir(self.path) if one.is_file() and one.name[0] != ".")
        marker = json.dumps({"version": 0, "brokerEpoch": -1, "files": names})
        replace_file(self.file(CLEAN_STOP), with_checksum(marker + " "))

    def new_producer_id(self) -> int:
        """A producer id that was never used in this directory; ids are reserved on disk in blocks.

        Raises `CoordinatorLoadInProgress`, as Kafka does, while no block can be reserved: clients retry.
        """
        if self._next_producer_id == self._producer_ids_end:
            path = self.file("producer-ids")
            try:
                first = self._first_unreserved(path)
                replace_file(path, with_checksum(f"{first + PRODUCER_ID_BLOCK}\n"))
            except OSError as error:
                _log.warning("cannot reserve producer ids in %s: %s", path, error.strerror)
                raise CoordinatorLoadInProgress(f"cannot reserve producer ids: {error.strerror}") from error
            self._next_producer_id, self._producer_ids_end = first, first + PRODUCER_ID_BLOCK
        self._next_producer_id += 1
        return self._next_producer_id - 1

    @staticmethod
    def _first_unreserved(path: str) -> int:
        try:
            with open(path, "rb") as file:
                return int(without_checksum(file.read()))
        except FileNotFoundError:
            return 0
        except ValueError:
            first = time.time_ns() // 1_000_000  # higher than any id ever used
            _log.warning("%s is damaged: producer ids go on at %d, so that none is given out twice", path, first)
            return first

    def close(self) -> None:
        """Closes the registries, and releases the lock."""
        self.opened.close()
