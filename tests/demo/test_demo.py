"""The tour runs to its end on this machine, with real clients, and leaves nothing behind."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

START = [sys.executable, "-m", "groupkeeper.demo"]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}


@pytest.mark.timeout(360)
def test_the_tour_shows_the_main_job(tmp_path: Path) -> None:
    tour = subprocess.run(START, env=environment(tmp_path), capture_output=True, text=True, timeout=330, check=False)
    assert tour.returncode == 0, tour.stdout + tour.stderr
    shown = ["--list", "--describe", "--dry-run", "--execute", "--delete-offsets", "START-OFFSET", "groupkeeper check"]
    shown += [
        "groupkeeper serve",
        "groupkeeper_group_lag{",
        "pipeline report",
        "report.html",
        "Three things to try next",
    ]
    places = [tour.stdout.index(text) for text in shown]
    assert places == sorted(places)
    left = [path.name for path in tmp_path.iterdir() if not path.name.startswith("groupkeeper-java-")]
    assert left == []  # but for the way to the Java that came with Spark


def test_an_interrupted_tour_stops_its_broker(tmp_path: Path) -> None:
    tour = subprocess.Popen(
        START,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert tour.stdout is not None
        address = next(line for line in tour.stdout if "ready at" in line).split()[4]
        tour.send_signal(signal.SIGINT)
        _, errors = tour.communicate(timeout=60)
    finally:
        tour.kill()
    assert tour.returncode == 130, errors
    assert "stopped" in errors
    assert list(tmp_path.iterdir()) == []
    assert not is_listening(address)


def is_listening(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def test_without_the_clients_it_names_the_extra() -> None:
    lines = ["import sys", "sys.modules['confluent_kafka'] = None", "from groupkeeper.demo.__main__ import main"]
    hide = "; ".join([*lines, "sys.exit(main())"])
    tour = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True, timeout=30, check=False)
    assert tour.returncode == 1
    assert "'.[demo]'" in tour.stderr
