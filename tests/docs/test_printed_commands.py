"""What guides print and test_readme does not run: commands, options and targets that exist, programs that run."""

import asyncio
import re
import shlex
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.docs.test_readme import COMMANDS, COOKBOOK_COMMANDS, GUIDE_COMMANDS, environment, run

from groupkeeper.cli.framework.commands import parser
from groupkeeper.client.admin import Admin
from groupkeeper.demo import stage
from groupkeeper.operations.plans.document import write
from groupkeeper.operations.plans.model import Plan
from groupkeeper.testing.background import BackgroundBroker

ROOT = Path(__file__).resolve().parents[2]
GUIDES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
BENCHMARKS = {path.stem for path in (ROOT / "bench").glob("*.py") if not path.stem.startswith("_")}
SHARE_GUIDE = (ROOT / "docs/share-groups.md").read_text()
METRICS_GUIDE = (ROOT / "docs/metrics.md").read_text()
QUICK_HEARTBEATS = {
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.session.timeout.ms": "6000",
}


def blocks(text: str, languages: str) -> list[str]:
    return re.findall(rf"^```(?:{languages})\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def printed() -> list[str]:
    """The lines of all guides that begin with `groupkeeper`, whole where they go on in the next line."""
    return [
        line.removeprefix("$ ")
        for guide in GUIDES
        for block in blocks(guide.read_text(), "|sh|console")
        for line in block.replace("\\\n", " ").splitlines()
        if line.removeprefix("$ ").startswith("groupkeeper ")
    ]


@pytest.mark.parametrize("command", sorted(set(printed()).difference(COMMANDS, GUIDE_COMMANDS, COOKBOOK_COMMANDS)))
def test_the_command_and_its_options_exist(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owners.txt").write_text("team-a-* team-a\n")
    (tmp_path / "key.txt").write_text("a key that is long enough\n")
    (tmp_path / "journals").mkdir()
    (tmp_path / "journals" / "ops1.jsonl").touch()
    words = shlex.split(command, comments=True)[1:]
    try:
        parser().parse_args(words)
    except SystemExit:
        pytest.fail(f"not taken: {command}")


def test_the_picture_of_a_terminal_has_commands_that_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.json").write_text("".join(write(Plan(None, ()))))
    picture = ElementTree.parse(ROOT / "docs/pictures/terminal.svg").getroot()
    rows: dict[str, str] = {}
    for part in picture.iter("{http://www.w3.org/2000/svg}text"):
        rows[part.get("y", "")] = rows.get(part.get("y", ""), "") + (part.text or "").replace("\xa0", " ")
    commands = [row.removeprefix("$ ") for row in rows.values() if row.startswith("$ ")]
    assert len(commands) == 4
    for command in commands:
        assert parser().parse_args(shlex.split(command)[1:])
    assert all(any(head in row for row in rows.values()) for head in ("STATUS", "REPLAYED", "RESULT"))


def test_benchmarks_that_are_named_exist() -> None:
    texts = [path.read_text() for path in (*GUIDES, *(ROOT / "docs/design").glob("*.md"))]
    named = {name for text in texts for found in re.findall(r'BENCH_ARGS=("[^"]+"|\w+)', text)
             for name in found.strip('"').split()}  # fmt: skip
    assert len(named) > 5
    assert named - BENCHMARKS == set()


def test_targets_of_make_that_are_named_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        name for path in GUIDES for name in re.findall(r"(?:`|^    )make ([a-z]+)", path.read_text(), re.MULTILINE)
    }
    assert {"setup", "demo", "test"} <= named
    assert named - targets == set()


def test_the_queue_of_share_groups_runs_from_beginning_to_end(tmp_path: Path) -> None:
    programs = blocks(SHARE_GUIDE, "python")
    (console,) = blocks(SHARE_GUIDE, "console")
    with BackgroundBroker(properties=QUICK_HEARTBEATS) as broker:
        address = broker.bootstrap_servers
        assert sum("127.0.0.1:9092" in text for text in (*programs, console)) == 2
        (tmp_path / "queue.py").write_text("\n".join(programs).replace("127.0.0.1:9092", address))
        worker = subprocess.Popen([sys.executable, "queue.py"], cwd=tmp_path)
        try:
            asyncio.run(until_all_is_done(address, worker))
            for command, header in re.findall(r"^\$ (.*)\n+(GROUP .*)$", console, re.MULTILINE):
                ended = run(command.replace("127.0.0.1:9092", address), tmp_path)
                assert ended.returncode == 0, ended
                lines = [line.split() for line in ended.stdout.splitlines() if line]
                assert lines[0] == header.split()
                assert [line[:3] for line in lines[1:]] == [["workers", "jobs", "0"], ["workers", "jobs", "1"]]
        finally:
            worker.kill()
            worker.wait()


async def until_all_is_done(address: str, worker: subprocess.Popen[bytes]) -> None:
    """Until the worker has accepted every record of the queue."""
    async with Admin(address) as admin, asyncio.timeout(60):
        while True:
            found = (await admin.list_share_group_offsets({"workers": None})).done.get("workers")
            lags = [one.lag for one in found.done.values() if one is not None] if found else []
            if lags == [0, 0]:
                return
            assert worker.poll() is None, "the worker has ended"
            await asyncio.sleep(0.1)


def test_the_broker_with_metrics_gives_them(tmp_path: Path) -> None:
    (block,) = blocks(METRICS_GUIDE, "sh")
    command = next(line for line in block.splitlines() if line.startswith("groupkeeper broker"))
    url = next(line for line in block.splitlines() if line.startswith("curl ")).removeprefix("curl ")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words = shlex.split(command.replace("9092", "0").replace("9404", port).replace("/tmp/", f"{tmp_path}/"))
    broker = subprocess.Popen(words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert stage.wait_for_address(broker)
        with urllib.request.urlopen(url.replace("9404", port), timeout=20) as answer:
            names = set(re.findall(r"^(kafka\w+)", answer.read().decode(), re.MULTILINE))
        documented = set(re.findall(r"`(kafka_\w+)`", METRICS_GUIDE))
        assert documented
        later = {name for name in documented if name.endswith("_last_pruned_offset") or "_deadletterqueue" in name}
        assert documented - names == later  # partitions and groups have these once there is something to tell
    finally:
        broker.kill()
        broker.communicate()
