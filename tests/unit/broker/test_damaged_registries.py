"""Damage to the small files of a data directory: the broker refuses to start with the file's name and a way out, or
goes on without loss.
"""

from pathlib import Path

import pytest

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.storage.directory import StorageDirectory
from groupkeeper.broker.storage.journal import RegistryJournal
from groupkeeper.broker.storage.offset_checkpoint import OffsetCheckpoint

ENTRIES = [{"user": "alice", "limit": 5}, {"user": "bob", "limit": 7}]


def journal(path: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    RegistryJournal(str(path), "limits").replay(found.append)
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    written = RegistryJournal(str(tmp_path / "limits.journal"), "limits")
    written.begin(ENTRIES[:1])
    written.write(ENTRIES[1])
    written.close()
    return tmp_path / "limits.journal"


def test_any_flipped_bit_of_a_registry_is_noticed(path: Path) -> None:
    content = path.read_bytes()
    assert journal(path) == ENTRIES
    for at in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[at] ^= 1 << bit
            path.write_bytes(damaged)
            if at == len(content) - 1:  # as if the last write had ended early
                assert journal(path) == ENTRIES[:1]
                continue
            with pytest.raises(InvalidSetting, match=r"limits\.journal: line [123] is damaged: restore .* backup, or"):
                journal(path)


def test_a_registry_that_ends_too_early(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0])
    with pytest.raises(InvalidSetting, match="has 0 of 1 entries; restore it from a backup, or remove its first line"):
        journal(path)
    path.write_bytes(b"")
    assert journal(path) == []
    assert f"{path} is empty: the limits that it held are gone" in caplog.text


def test_a_registry_without_checksums_is_read(path: Path) -> None:
    path.write_text('{"user": "alice", "limit": 5}\n')
    assert journal(path) == ENTRIES[:1]


def test_an_entry_that_nobody_can_use_is_named(path: Path) -> None:
    def take(entry: dict[str, object]) -> None:
        bytes.fromhex(str(entry["user"]))

    with pytest.raises(InvalidSetting, match=r"limits\.journal: line 2 is damaged"):
        RegistryJournal(str(path), "limits").replay(take)


def test_a_damaged_checkpoint_counts_as_empty(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    offsets = {("t", 0): 17, ("u", 3): 4}
    OffsetCheckpoint(str(path)).replace(offsets)
    content = path.read_bytes()
    assert OffsetCheckpoint(str(path)).offsets == offsets
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1
        path.write_bytes(damaged)
        assert OffsetCheckpoint(str(path)).offsets == {} or at == len(content) - 1
    assert f"{path} is damaged and is treated as empty" in caplog.text
    path.write_text("0\n2\nt 0 17\nu 3 4\n")  # Apache Kafka's
    assert OffsetCheckpoint(str(path)).offsets == offsets
    path.write_text("0\n1\nt zero 7\n")
    assert OffsetCheckpoint(str(path)).offsets == {}


def test_a_damaged_identity_is_named_with_a_way_out(tmp_path: Path) -> None:
    StorageDirectory(str(tmp_path), 1).close()
    path = tmp_path / "meta.properties"
    content = path.read_bytes()
    for damaged in (b"", content[:20], content + b"\x85\x99", content.replace(b"cluster.id=", b"cluster.id=x")):
        path.write_bytes(damaged)
        with pytest.raises(
            InvalidSetting, match=r"meta\.properties is damaged: restore it from a backup, or remove it"
        ):
            StorageDirectory(str(tmp_path), 1)
    path.unlink()
    StorageDirectory(str(tmp_path), 1).close()


def test_damaged_producer_ids_are_not_given_out_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = StorageDirectory(str(tmp_path), 1)
    given = {directory.new_producer_id() for _ in range(5)}
    directory.close()
    for damaged in (b"x", b"", (tmp_path / "producer-ids").read_bytes().replace(b"1", b"3", 1)):
        (tmp_path / "producer-ids").write_bytes(damaged)
        directory = StorageDirectory(str(tmp_path), 1)
        assert directory.new_producer_id() not in given
        directory.close()
        assert "producer-ids is damaged: producer ids go on at" in caplog.text
        caplog.clear()


def test_files_that_have_gone_since_a_clean_stop_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = StorageDirectory(str(tmp_path), 1)
    (tmp_path / "acls.journal").touch()
    directory.mark_clean_stop()
    directory.close()
    (tmp_path / "acls.journal").unlink()
    StorageDirectory(str(tmp_path), 1).close()
    assert f"{tmp_path / 'acls.journal'} is gone since the broker was stopped" in caplog.text
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
