"""The topic registry: what survives a restart, and what is refused."""

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.log.topics import Topics
from groupkeeper.broker.placement.placements import Placements
from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.storage.directory import PRODUCER_ID_BLOCK, DirectoryInUse, StorageDirectory
from groupkeeper.broker.storage.journal import RegistryJournal
from groupkeeper.broker.storage.open_files import OpenFiles
from groupkeeper.java_properties import parse_properties
from groupkeeper.protocol import errors
from groupkeeper.protocol.record_batch import Record, write_batch
from groupkeeper.protocol.uuids import uuid_of, uuid_text

OpenTopics = Callable[[], Topics]
BATCH = write_batch([Record(b"k", b"v", timestamp=1)])


@pytest.fixture
def open_topics(tmp_path: Path) -> Iterator[OpenTopics]:
    """Opens the registry; a second call is a restart after `kill -9`: nothing was closed in an orderly way."""
    opened: list[tuple[StorageDirectory, OpenFiles]] = []

    def open_one() -> Topics:
        for directory, files in opened:
            files.close_all()
            directory.close()
        directory, files = StorageDirectory(str(tmp_path), 1), OpenFiles()
        opened.append((directory, files))
        topics = Topics(directory, Config(), files, Placements([1]))
        topics.load()
        return topics

    yield open_one
    for directory, files in opened:
        files.close_all()
        directory.close()


def test_topics_survive_a_restart(open_topics: OpenTopics) -> None:
    topics = open_topics()
    topic = topics.create("a", 3, {"retention.ms": "5"})
    topics.create("b", 1)
    topics.grow(topic, 4)
    topics.configure(topic, {"cleanup.policy": "compact"})
    topics.delete("b")
    for _ in range(2):
        topics = open_topics()
        assert list(topics.names()) == ["a"]
        found = topics.get("a")
        assert found is not None
        assert found.topic_id == topic.topic_id
        assert topics.by_id(topic.topic_id) is found
        assert len(found.partitions) == 4
        assert found.config.overrides == {"cleanup.policy": "compact"}
        assert found.config.is_compacted


def test_a_torn_change_is_dropped(open_topics: OpenTopics, tmp_path: Path) -> None:
    open_topics().create("a", 1)
    journal = tmp_path / "topics.journal"
    whole = journal.read_bytes()
    open_topics().create("b", 2)
    both = journal.read_bytes()
    for length in range(len(whole), len(both)):
        journal.write_bytes(both[:length])
        assert list(open_topics().names()) == ["a"]


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "x" * 250])
def test_bad_names(open_topics: OpenTopics, name: str) -> None:
    with pytest.raises(errors.InvalidTopicException):
        open_topics().create(name, 1)


def test_colliding_names(open_topics: OpenTopics) -> None:
    topics = open_topics()
    topics.create("a.b", 1)
    with pytest.raises(errors.InvalidTopicException, match=r"Topic 'a_b' collides with existing topic: a.b"):
        topics.create("a_b", 1)
    topics.delete("a.b")
    topics.create("a_b", 1)


def test_other_refusals(open_topics: OpenTopics) -> None:
    topics = open_topics()
    with pytest.raises(errors.InvalidPartitions):
        topics.create("a", 0)
    with pytest.raises(errors.UnknownTopicOrPartition):
        topics.delete("a")
    with pytest.raises(InvalidSetting):
        topics.create("a", 1, {"nonsense": "1"})
    assert list(open_topics().names()) == []


def test_a_log_left_behind_by_a_deletion_that_was_cut_short_is_not_revived(
    open_topics: OpenTopics, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topics = open_topics()
    topics.create("a", 1).partitions[0].append(BATCH, 0)
    left = (tmp_path / "a-0/00000000000000000000.log").read_bytes()
    metadata = (tmp_path / "a-0/partition.metadata").read_text()
    topics.delete("a")
    topics.create("a", 1)
    (tmp_path / "a-0").mkdir()
    (tmp_path / "a-0/partition.metadata").write_text(metadata)
    (tmp_path / "a-0/00000000000000000000.log").write_bytes(left)
    found = open_topics().get("a")
    assert found is not None
    assert found.partitions[0].log_end_offset == 0
    assert "belongs to a deleted topic" in caplog.text


@pytest.mark.parametrize("is_cut_short", [False, True])
def test_a_topic_of_a_deleted_ones_name_begins_at_its_own_start(
    open_topics: OpenTopics, *, is_cut_short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the deletion was all that still came to the disk."""
    topics = open_topics()
    for name in ("a", "other"):
        log = topics.create(name, 1).partitions[0]
        for _ in range(3):
            log.append(BATCH, 0)
            log.roll()
        log.sync()
        log.advance_start(2)
    asyncio.run(topics.write_start_offsets())
    asyncio.run(topics.write_recovery_points())
    topics.delete("a")
    if is_cut_short:
        topics = open_topics()
    topics.create("a", 1).partitions[0].append(BATCH, 0)
    again = open_topics()
    states = [again.partition(name, 0) for name in ("a", "other")]
    found = [(one.log_start_offset, one.log_end_offset, one.recovery_point) for one in states if one is not None]
    assert found == [(0, 1, 0), (2, 3, 3)]


def test_a_deleted_topics_log_whose_id_the_power_took_is_removed(open_topics: OpenTopics, tmp_path: Path) -> None:
    topics = open_topics()
    for name in ("a", "other"):
        topics.create(name, 1).partitions[0].append(BATCH, 0)
    topics.delete("a")
    (tmp_path / "a-0").mkdir()  # the file system had not noted that it was moved aside
    (tmp_path / "a-0/partition.metadata").write_bytes(b"")
    (tmp_path / "other-0/partition.metadata").write_bytes(b"")
    again = open_topics()
    assert (list(again.names()), (tmp_path / "a-0").exists()) == (["other"], False)
    log = again.partition("other", 0)
    assert log is not None
    assert log.log_end_offset == 1


def test_callbacks(open_topics: OpenTopics) -> None:
    topics = open_topics()
    heard: list[tuple[str, str]] = []
    topics.on_created.append(lambda topic: heard.append(("created", topic.name)))
    topics.on_changed.append(lambda topic: heard.append(("changed", topic.name)))
    topics.on_deleted.append(lambda topic: heard.append(("deleted", topic.name)))
    topic = topics.create("a", 1)
    topics.grow(topic, 2)
    topics.configure(topic, {})
    topics.delete("a")
    assert heard == [("created", "a"), ("changed", "a"), ("changed", "a"), ("deleted", "a")]


class TestStorageDirectory:
    def test_one_owner_at_a_time(self, tmp_path: Path) -> None:
        first = StorageDirectory(str(tmp_path), 1)
        with pytest.raises(DirectoryInUse, match="in use by another broker"):
            StorageDirectory(str(tmp_path), 1)
        first.close()
        second = StorageDirectory(str(tmp_path), 1)
        assert second.cluster_id == first.cluster_id
        second.close()

    def test_identity_is_written_as_apache_does(self, tmp_path: Path) -> None:
        directory = StorageDirectory(str(tmp_path), 3)
        directory.close()
        lines = parse_properties((tmp_path / "meta.properties").read_text())
        assert lines["version"] == "1"
        assert lines["node.id"] == "3"
        assert lines["cluster.id"] == directory.cluster_id
        assert len(uuid_of(directory.cluster_id)) == 16
        with pytest.raises(InvalidSetting, match=r"belongs to node.id 3, not 4"):
            StorageDirectory(str(tmp_path), 4)

    def test_producer_ids_are_never_given_twice(self, tmp_path: Path) -> None:
        given = []
        for _ in range(3):
            directory = StorageDirectory(str(tmp_path), 1)
            given += [directory.new_producer_id() for _ in range(1500)]
            directory.close()
        assert given[0] == 0
        assert len(set(given)) == len(given)

    def test_producer_ids_are_never_given_twice_after_a_failed_write(self, tmp_path: Path) -> None:
        directory = StorageDirectory(str(tmp_path), 1)
        given = [directory.new_producer_id() for _ in range(PRODUCER_ID_BLOCK)]
        obstacle = tmp_path / "producer-ids.tmp"
        obstacle.mkdir()  # what is written before it is put in place cannot be written
        for _ in range(2):
            with pytest.raises(errors.CoordinatorLoadInProgress, match="cannot reserve producer ids: Is a directory"):
                directory.new_producer_id()
        obstacle.rmdir()
        given.append(directory.new_producer_id())
        directory.close()
        again = StorageDirectory(str(tmp_path), 1)
        given.append(again.new_producer_id())
        again.close()
        assert given == [*range(PRODUCER_ID_BLOCK), PRODUCER_ID_BLOCK, 2 * PRODUCER_ID_BLOCK]

    def test_a_replaced_file_is_on_the_disk_before_its_name_is(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        steps: list[str] = []
        fsync, replace = os.fsync, os.replace

        def note_fsync(descriptor: int) -> None:
            steps.append(f"fsync {os.path.basename(os.readlink(f'/proc/self/fd/{descriptor}'))}")
            fsync(descriptor)

        def note_replace(source: str, target: str) -> None:
            steps.append("replace")
            replace(source, target)

        monkeypatch.setattr("os.fsync", note_fsync)
        monkeypatch.setattr("os.replace", note_replace)
        journal = RegistryJournal(str(tmp_path / "topics.journal"), "topic registry")
        journal.begin([{"create": "t"}])
        journal.close()
        assert steps == ["fsync topics.journal.tmp", "replace", f"fsync {tmp_path.name}"]

    def test_an_entry_of_a_journal_that_the_power_took_was_never_answered(self, tmp_path: Path) -> None:
        path = tmp_path / "topics.journal"
        path.write_bytes(b'{"create": "a"}\n' + bytes(40) + b'"b"}\n')
        found: list[dict[str, object]] = []
        RegistryJournal(str(path), "topic registry").replay(found.append)
        assert found == [{"create": "a"}]
        path.write_bytes(bytes(40) + b'"b"}\n{"create": "a"}\n')
        with pytest.raises(InvalidSetting, match="line 1 is damaged"):
            RegistryJournal(str(path), "topic registry").replay(found.append)

    def test_uuids_as_texts(self) -> None:
        assert uuid_text(bytes(range(16))) == "AAECAwQFBgcICQoLDA0ODw"
        assert uuid_of("AAECAwQFBgcICQoLDA0ODw") == bytes(range(16))
        with pytest.raises(ValueError):
            uuid_of("AAEC")


def test_logs_that_the_registry_does_not_know_are_never_touched(open_topics: OpenTopics, tmp_path: Path) -> None:
    foreign = tmp_path / "orders-0"
    foreign.mkdir()
    (foreign / "00000000000000000000.log").write_bytes(BATCH)
    with pytest.raises(InvalidSetting, match=r"not in its topics\.journal: orders-0\. .*use another directory"):
        open_topics()
    assert (foreign / "00000000000000000000.log").read_bytes() == BATCH


def test_a_lost_registry_is_an_error_not_an_empty_broker(open_topics: OpenTopics, tmp_path: Path) -> None:
    topic = open_topics().create("a", 1)
    topic.partitions[0].append(BATCH, 1)
    (tmp_path / "topics.journal").unlink()
    with pytest.raises(InvalidSetting, match="journal: a-0"):
        open_topics()


def test_only_what_a_deletion_left_is_removed(open_topics: OpenTopics, tmp_path: Path) -> None:
    topics = open_topics()
    topics.create("a", 1).partitions[0].append(BATCH, 1)
    topics.create("b", 1).partitions[0].append(BATCH, 1)
    (tmp_path / "photos.deleted").mkdir()
    (tmp_path / "my-1.deleted").mkdir()
    (tmp_path / "notes-1").write_text("a file, no log")
    # Killed after the deletion was written down: once before the logs were renamed, once before they were removed.
    journal = tmp_path / "topics.journal"
    journal.write_text(journal.read_text() + '{"delete": "a"}\n{"delete": "b"}\n')
    (tmp_path / "b-0").rename(tmp_path / "b-0.deleted")
    assert list(open_topics().names()) == []
    assert not (tmp_path / "a-0").exists()
    assert not (tmp_path / "b-0.deleted").exists()
    assert (tmp_path / "photos.deleted").exists()
    assert (tmp_path / "my-1.deleted").exists()
    assert (tmp_path / "notes-1").exists()


def test_a_registry_of_random_bytes_is_named(open_topics: OpenTopics, tmp_path: Path) -> None:
    (tmp_path / "topics.journal").write_bytes(b"\xff\xfe\n")
    with pytest.raises(InvalidSetting, match=r"topics\.journal: line 1 is damaged: .* backup"):
        open_topics()


def test_a_topic_of_the_longest_name_can_be_deleted(open_topics: OpenTopics, tmp_path: Path) -> None:
    topics, name = open_topics(), "n" * 249
    for _ in range(2):
        topics.create(name, 1).partitions[0].append(BATCH, 1)
        topics.delete(name)
    topics.close()
    assert not [path.name for path in tmp_path.iterdir() if path.is_dir()]


def test_a_directory_that_cannot_be_moved_is_in_nobodys_way_but_its_own_topics(
    open_topics: OpenTopics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = open_topics()
    deleted: list[str] = []
    topics.on_deleted.append(lambda topic: deleted.append(topic.name))
    topics.create("t", 1).partitions[0].append(BATCH, 1)

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("os.rename", fail)
        topics.delete("t")
        assert deleted == ["t"]
        with pytest.raises(errors.KafkaStorageError, match="t-0 of a deleted topic is in the way"):
            topics.create("t", 1)
        assert topics.get("t") is None
        assert list(open_topics().names()) == []
    assert not (tmp_path / "t-0").exists()


def test_logs_are_removed_in_the_background(
    open_topics: OpenTopics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    rmtree = shutil.rmtree

    def remove(path: str, *, ignore_errors: bool) -> None:
        threads.append(threading.current_thread())
        rmtree(path, ignore_errors=ignore_errors)

    monkeypatch.setattr("shutil.rmtree", remove)
    topics = open_topics()
    topics.create("t", 1).partitions[0].append(BATCH, 1)
    topics.delete("t")
    assert not (tmp_path / "t-0").exists()
    topics.close()
    assert not [path.name for path in tmp_path.iterdir() if path.is_dir()]
    assert threads
    assert threading.current_thread() not in threads
