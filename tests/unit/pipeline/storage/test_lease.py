"""Only one run at a time holds the lease of a directory, whoever is killed or suspended."""

from pathlib import Path

import pytest

from groupkeeper.pipeline.storage.files import LocalFiles
from groupkeeper.pipeline.storage.lease import LEASES, Busy, Lease


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lease(root: Path, clock: Clock) -> Lease:
    return Lease(LocalFiles(root), "s3a://bucket/tables", holds_s=120, clock=clock)


def test_a_second_run_is_refused_until_the_first_one_ends(tmp_path: Path, clock: Clock) -> None:
    first, second = lease(tmp_path, clock), lease(tmp_path, clock)
    with first.held():
        with pytest.raises(Busy, match=r"s3a://bucket/tables: another run writes to it \(process \d+ at .+\)"):
            second.take()
        first.check()
    second.take()
    second.check()


def test_what_a_killed_run_held_is_free_after_a_time(tmp_path: Path, clock: Clock) -> None:
    lease(tmp_path, clock).take()
    clock.now += 119
    with pytest.raises(Busy):
        lease(tmp_path, clock).take()
    clock.now += 1
    lease(tmp_path, clock).take()


def test_a_run_that_was_suspended_for_long_notices(tmp_path: Path, clock: Clock) -> None:
    first, second = lease(tmp_path, clock), lease(tmp_path, clock)
    first.take()
    clock.now += 121
    with pytest.raises(Busy, match="was suspended"):
        first.check()
    second.take()
    with pytest.raises(Busy, match="was suspended"):
        first.renew()
    first.release()
    second.check()
    second.renew()


def test_it_is_held_for_as_long_as_it_is_renewed_and_leaves_few_files(tmp_path: Path, clock: Clock) -> None:
    first = lease(tmp_path, clock)
    first.take()
    for _ in range(20):
        clock.now += 100
        first.renew()
        first.check()
        with pytest.raises(Busy):
            lease(tmp_path, clock).take()
    assert len(list((tmp_path / LEASES).iterdir())) <= 3


def test_of_two_that_begin_at_once_one_gets_it(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = lease(tmp_path, clock), lease(tmp_path, clock)
    real = LocalFiles.names

    def names(files: LocalFiles, path: str) -> list[str]:
        found = real(files, path)
        monkeypatch.setattr(LocalFiles, "names", real)
        first.take()  # after the second one has looked
        return found

    monkeypatch.setattr(LocalFiles, "names", names)
    with pytest.raises(Busy, match="at the same moment"):
        second.take()
    first.check()
