"""The history of what collectors found: bounded, there again after a kill, and no trouble when the disk is full."""

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.live.views import member, row, snapshot, view

from groupkeeper.client.admin.types import GroupState, TopicPartition
from groupkeeper.live.history import BOUNDS, Bounds, History, HistoryFailed
from groupkeeper.live.model import OtherCluster, Polls, Wait, not_polled
from groupkeeper.live.standings import KnownGroup
from groupkeeper.operations.problems import Problem
from groupkeeper.operations.watch import WatchedChange, What

EVERY = BOUNDS._replace(step_ms=0)
MINUTE_MS = 60_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "watched.sqlite"


def add(history: History, at_ms: int, committed: int = 5, name: str = "g", **more: Any) -> None:
    history.add(snapshot(view(name, [row("t", 0, committed)], progress_ms=at_ms, **more)), [], at_ms)


def test_samples_are_there_after_a_restart(path: Path) -> None:
    history = History(path, EVERY)
    add(history, 1000, 5)
    add(history, 2000, 7)
    history.close()
    again = History(path, EVERY)
    samples = again.samples("prod", "g")
    found = [(each.at_ms, each.state, each.members, each.lag, each.committed) for each in samples]
    assert found == [(1000, "Stable", 0, 95, 5), (2000, "Stable", 0, 93, 7)]
    assert again.samples("prod", "g", 1500) == samples[1:]
    assert again.samples("dr", "g") == again.samples("prod", "h") == []
    assert again.known("prod") == {"g": KnownGroup(7, 2000, has_moved=True)}
    assert again.known("dr") == {}
    assert path.stat().st_mode & 0o077 == 0


def test_a_sample_holds_until_something_changes(path: Path) -> None:
    history = History(path, Bounds(step_ms=MINUTE_MS))
    same = view("g", [row("t", 0, 5)], progress_ms=0)
    for number in range(10):
        history.add(snapshot(same), [], number * MINUTE_MS)
    add(history, 10 * MINUTE_MS, 6)
    add(history, 10 * MINUTE_MS + 1, 7)  # sooner than a sample may follow another
    add(history, 11 * MINUTE_MS, 8)
    found = [(each.at_ms // MINUTE_MS, each.committed) for each in history.samples("prod", "g")]
    assert found == [(0, 5), (10, 6), (11, 8)]


def test_a_clock_that_is_set_back_loses_no_samples(path: Path) -> None:
    history = History(path, Bounds(step_ms=MINUTE_MS))
    add(history, 100 * MINUTE_MS, 5)
    add(history, 40 * MINUTE_MS, 6)
    add(history, 41 * MINUTE_MS, 7)
    assert [each.committed for each in history.samples("prod", "g")] == [6, 7, 5]


def test_changes_and_failed_polls(path: Path) -> None:
    history = History(path)
    change = WatchedChange("g", What.JOINED, None, (TopicPartition("t", 0),), member("a"))
    history.add(snapshot(view()), [change, WatchedChange("g", What.STATE, "Stable", "Empty")], 1000)
    history.add(snapshot(at_ms=None, problems=(Problem("CALL_TIMED_OUT", "no answer"),)), [], 2000)
    found = [tuple(each) for each in history.changes("prod", "g")]
    assert found == [(1000, "member_joined", "a-id", None, "t-0"), (1000, "state", None, "Stable", "Empty")]
    assert history.count() == {"samples": 1, "changes": 2, "polls": 2}


def test_clusters_are_told_apart_by_their_ids(path: Path) -> None:
    history = History(path, EVERY)

    def seen(at_ms: int, committed: int, name: str, cluster_id: str) -> None:
        group = view("g", [row("t", 0, committed)], progress_ms=at_ms)
        history.add(snapshot(group, cluster=name, cluster_id=cluster_id, at_ms=at_ms), [], at_ms)

    def committed(name: str) -> list[int | None]:
        return [each.committed for each in history.samples(name, "g")]

    seen(1, 10, "prod", "A")
    seen(2, 20, "dr", "B")
    seen(3, 30, "prod", "C")  # it was rebuilt
    assert (committed("prod"), committed("dr")) == ([30], [20])
    assert history.last("prod").replaced == OtherCluster("A", 3)
    assert history.known_of("A") == {"g": KnownGroup(10, 1)}
    history.close()
    history = History(path, EVERY)
    assert history.known("prod") == {"g": KnownGroup(30, 3)}
    seen(4, 40, "prod", "B")  # the name of one that has another one
    seen(5, 50, "east", "C")  # another name for the same one
    assert (committed("prod"), committed("east")) == ([20, 40], [30, 50])
    assert (history.last("prod").replaced, history.last("east").replaced) == (OtherCluster("C", 4), None)
    history.close()
    history = History(path, EVERY)
    assert (committed("prod"), committed("east"), committed("nowhere")) == ([20, 40], [30, 50], [])
    seen(6, 60, "prod", "B")
    seen(7, 70, "again", "B")  # two names at a time: what is found is noted once
    assert (committed("prod"), committed("again")) == ([20, 40, 60], [20, 40, 60])
    assert history.last("prod").replaced == OtherCluster("C", 4)
    history.close()


def test_a_cluster_that_was_found_last(path: Path) -> None:
    history = History(path, EVERY)
    assert history.last("prod") == not_polled("prod")
    for at_ms, names in ((1000, ("g", "gone")), (2000, ("g",))):
        groups = [view(name, [row("t", 0, 5)], [Wait(7)], progress_ms=at_ms) for name in names]
        history.add(snapshot(*groups, at_ms=at_ms), [], at_ms)
    for at_ms in (3000, 4000):
        down = snapshot(at_ms=None)
        history.add(down._replace(polls=down.polls._replace(failing_ms=3000)), [], at_ms)
    history.close()
    last = History(path, EVERY).last("prod")
    assert (last.measured_ms, last.polls, last.cluster_id) == (2000, Polls(0, 0, 2000, 3000), "cluster-id")
    assert last.is_partial
    [group] = last.groups.values()
    assert (group.group_id, group.group_state, group.members, group.lag.lag, group.wait.lag_ms) == (
        "g", GroupState.STABLE, 0, 95, 7,
    )  # fmt: skip


def test_a_clock_that_is_far_ahead_for_a_while_removes_nothing(path: Path) -> None:
    steady_ms, year_ms = 0, 365 * 24 * 60 * MINUTE_MS
    history = History(path, Bounds(age_ms=10 * MINUTE_MS, step_ms=0), steady_ms=lambda: steady_ms)
    for number in range(5):
        steady_ms = number * MINUTE_MS
        add(history, year_ms + steady_ms + (year_ms if number == 3 else 0), number)
    assert [each.committed for each in history.samples("prod", "g")] == [0, 1, 2, 4, 3]  # by their times
    steady_ms += 20 * MINUTE_MS
    add(history, year_ms + steady_ms, 5)
    # What was written with the wrong time stays longer, and is not shown.
    assert [each.committed for each in history.samples("prod", "g")] == [5, 3]
    assert [each.committed for each in history.samples("prod", "g", until_ms=year_ms + steady_ms)] == [5]


def test_rows_and_ages_are_bounded(path: Path) -> None:
    steady_ms = 0
    history = History(path, Bounds(rows=100, age_ms=MINUTE_MS, step_ms=0), steady_ms=lambda: steady_ms)
    for number in range(1000):
        add(history, number, number)
    assert history.count()["samples"] == history.count()["polls"] == 100
    assert history.samples("prod", "g")[0].committed == 900
    steady_ms = 3 * MINUTE_MS
    add(history, 3 * MINUTE_MS)
    assert history.count() == {"samples": 1, "changes": 0, "polls": 1}


def test_a_group_at_rest_keeps_a_sample(path: Path) -> None:
    history = History(path, Bounds(rows=50, step_ms=0))
    idle, busy = view("idle", [row("t", 0, 5)], progress_ms=1), "busy"
    for number in range(200):
        history.add(snapshot(idle, view(busy, [row("t", 0, number % 90)], progress_ms=number)), [], number)
    assert history.samples("prod", "idle")
    assert len(history.samples("prod", "busy")) > 40
    history.close()
    assert History(path).known("prod")["idle"] == KnownGroup(5, 1)


def test_names_of_groups_that_are_long_gone_go(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groupkeeper.live.history._WRITES_PER_SWEEP", 10)
    history = History(path, Bounds(rows=20, step_ms=0))
    for number in range(100):
        add(history, number, name=f"console-consumer-{number}")
    assert len(history.known("prod")) <= 30


def test_groups_that_are_gone_are_in_the_file_only(path: Path) -> None:
    history = History(path)
    for number in range(20):
        names = ["stays", f"new-{number}"]
        history.add(snapshot(*(view(name, [row("t", 0, number)], progress_ms=1) for name in names)), [], number)
    assert len(history._ids) == len(history._last) == 2
    assert [each.committed for each in history.samples("prod", "new-3")] == [3]
    history.add(snapshot(at_ms=None), [], 20)  # a cluster that cannot be asked tells nothing of its groups
    assert len(history._ids) == 2
    history.add(snapshot(view("new-3", [row("t", 0, 9)], progress_ms=1)), [], 10 * MINUTE_MS)  # it comes back
    assert [each.committed for each in history.samples("prod", "new-3")] == [3, 9]
    history.close()
    again = History(path)
    assert len(again.known("prod")) == 21
    again.add(snapshot(view("stays", [row("t", 0, 19)], progress_ms=1)), [], 20 * MINUTE_MS)
    assert len(again._ids) == 1
    again.close()


def test_a_full_disk_loses_what_is_new_and_nothing_else(path: Path) -> None:
    history = History(path, EVERY)
    add(history, 1)
    [pages] = history._file.execute("PRAGMA page_count").fetchone()
    history._file.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(HistoryFailed, match="full"):
        history.add(snapshot(*(view(f"{'n' * 200}{each}", [row("t", 0, 5)]) for each in range(1000))), [], 2)
    assert len(history.samples("prod", "g")) == 1
    history._file.execute(f"PRAGMA max_page_count = {1000 * pages}")
    history.add(snapshot(*(view(f"{'n' * 200}{each}", [row("t", 0, 5)]) for each in range(1000))), [], 3)
    assert history.count()["samples"] == 1001


def test_a_file_that_may_not_grow(path: Path) -> None:
    """The operating system refuses the bytes, as it does on a full disk."""
    program = f"""if True:
        import resource, signal
        from tests.unit.live.test_history import EVERY, History, HistoryFailed, add
        from pathlib import Path
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        history = History({str(path)!r}, EVERY)
        add(history, 1)
        was = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, was[1]))
        failed = 0
        for number in range(2, 200):
            try:
                add(history, number, name="n" * 1000 + str(number))
            except HistoryFailed as failure:
                failed += 1
        resource.setrlimit(resource.RLIMIT_FSIZE, was)
        add(history, 1000)
        print(failed, len(history.samples("prod", "g")))
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50)
    failed, samples = map(int, done.stdout.split())
    assert failed > 10
    assert samples == 2
    assert sound(path) == "ok"


def test_what_was_noted_outlives_a_kill(path: Path) -> None:
    program = f"""if True:
        from tests.unit.live.test_history import EVERY, History, add
        history = History({str(path)!r}, EVERY)
        number = len(history.samples("prod", "g"))
        while True:
            number += 1
            add(history, number, number % 90)
            print(number, flush=True)
    """
    noted = 0
    for lines in (1, 30, 77):
        running = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        assert running.stdout is not None
        for _ in range(lines):
            noted = int(running.stdout.readline())
        running.kill()
        noted = int((running.communicate()[0].split() or [str(noted)])[-1])
        history = History(path, EVERY)
        times = [each.at_ms for each in history.samples("prod", "g")]
        history.close()
        assert times == list(range(1, len(times) + 1))
        assert len(times) in (noted, noted + 1)  # the last one may have been noted and not told
        assert sound(path) == "ok"


def sound(path: Path) -> str:
    with sqlite3.connect(path) as file:
        return str(file.execute("PRAGMA integrity_check").fetchone()[0])


def test_files_that_are_no_history_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("remember the milk " * 100)
    with pytest.raises(HistoryFailed, match="not a database"):
        History(path)
    assert path.read_text().startswith("remember the milk")
    below = tmp_path / "file" / "folder" / "h.sqlite"
    (tmp_path / "file").touch()
    with pytest.raises(HistoryFailed) as refused:
        History(below)
    said = f"{below}: {tmp_path / 'file'} is a file, not a folder; give another file by --history, or --history off"
    assert str(refused.value) == said
    with pytest.raises(HistoryFailed, match=r": Is a directory; give another file by --history"):
        History(tmp_path)
    other = tmp_path / "other.sqlite"
    History(other).close()
    for version in (1, 99):
        with sqlite3.connect(other) as file:
            file.execute(f"PRAGMA user_version = {version}")
        with pytest.raises(HistoryFailed, match=rf"version {version} .* --history off"):
            History(other)


def test_one_program_at_a_time(path: Path) -> None:
    first = History(path)
    with pytest.raises(HistoryFailed, match=r"another program writes it.*another --history"):
        History(path)
    first.close()
    History(path).close()
