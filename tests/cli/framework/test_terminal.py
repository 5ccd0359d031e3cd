"""`groupkeeper` as a person meets it: colours and progress at a terminal only; Ctrl-C; readers that leave."""

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.acts import commit, committed, member
from tests.cli.stages import INACTIVE

from groupkeeper.cli.framework.terminal import _INTERVAL_S, _PATIENCE_S
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition

STAGE = INACTIVE

PATIENCE_S = 25.0
COMMAND = [sys.executable, "-m", "groupkeeper"]


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of somebody who takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


class Terminal:
    """A command at a terminal."""

    def __init__(self, *words: str, **environment: str) -> None:
        self.shown = ""
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            inherited = {name: text for name, text in os.environ.items() if name != "NO_COLOR"}
            os.execvpe(COMMAND[0], [*COMMAND, *words], {**inherited, "TERM": "xterm", **environment})

    def read(self, until: str | None = None) -> str:
        """What it shows, until there is this text or, None, until it ends."""
        deadline = time.monotonic() + PATIENCE_S
        while until is None or until not in self.shown:
            assert time.monotonic() < deadline, self.shown
            if select.select([self._terminal], [], [], 0.2)[0]:
                try:
                    text = os.read(self._terminal, 65536)
                except OSError:  # Linux says so that nobody has the terminal open any more
                    break
                self.shown += text.decode()
        return self.shown

    def stays(self, seconds: float) -> bool:
        """Whether it shows nothing more for that long."""
        return not select.select([self._terminal], [], [], seconds)[0]

    def press(self, key: str) -> None:
        os.write(self._terminal, key.encode())

    def end(self) -> int:
        """Its exit status, as a shell gives it: 128 and the number of the signal that ended it.

        CPython ends by SIGINT, also where KeyboardInterrupt was handled, when that was raised while it executed a
        text, as dataclasses do when they are imported.
        """
        self.read()
        os.close(self._terminal)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return status if status >= 0 else 128 - status


@pytest.mark.parametrize(
    ("words", "environment", "has_colour"),
    [
        ([], {}, True),
        ([], {"NO_COLOR": "1"}, False),
        ([], {"NO_COLOR": ""}, True),
        ([], {"TERM": "dumb"}, False),
        (["--color", "never"], {}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
    ],
)
def test_colours_at_a_terminal(
    servers: str, words: list[str], environment: Mapping[str, str], has_colour: bool
) -> None:
    terminal = Terminal("groups", "offsets", "zeta", "nope", "--bootstrap-server", servers, *words, **environment)
    shown = terminal.read()
    assert terminal.end() == 1
    assert "beyond_log_end" in shown
    assert "Group nope not found (GROUP_ID_NOT_FOUND)" in shown
    assert ("\x1b[33mbeyond_log_end" in shown, "\x1b[31merror:" in shown) == (has_colour, has_colour)
    assert ("\x1b" in shown) == has_colour


QUESTION = "Type the number of groups, {}, to change them, anything else to cancel: "


def test_an_undo_shows_what_it_takes_back_and_asks(servers: str, tmp_path: Path) -> None:
    journal = {"GROUPKEEPER_JOURNAL": str(tmp_path / "journal.jsonl")}
    where = ["--bootstrap-server", servers]
    before = committed(servers, "billing")
    reset = ["groups", "reset", "billing", "--topic", "orders", "--to-earliest", "--execute", *where]
    done = subprocess.run([*COMMAND, *reset], env={**os.environ, **journal}, capture_output=True, check=False)
    assert done.returncode == 0
    now = committed(servers, "billing")
    assert now != before
    change = json.loads((tmp_path / "journal.jsonl").read_text().splitlines()[0])["id"]
    for words, answer in (([], "no\n"), ([], "\n"), (["--execute"], "2\n"), (["--output", "json"], "y\n")):
        terminal = Terminal("undo", *words, *where, **journal)
        terminal.read(QUESTION.format(1))
        for text in (change, "reset by ", "groupkeeper groups reset billing", "would be applied", "on cluster "):
            assert text in terminal.shown
        terminal.press(answer)
        assert terminal.end() == 1
        assert "nothing was changed" in terminal.shown
        assert committed(servers, "billing") == now
    # Who only wants to look is not asked.
    terminal = Terminal("undo", "--dry-run", *where, **journal)
    assert (terminal.end(), "Type the number" in terminal.shown) == (0, False)
    assert committed(servers, "billing") == now
    terminal = Terminal("undo", *where, **journal)
    terminal.read(QUESTION.format(1))
    terminal.press("1\n")
    assert terminal.end() == 0
    assert committed(servers, "billing") == before


@pytest.mark.parametrize(
    "words",
    [
        ["groups", "reset", "[bz]*", "--topic", "orders:0", "--to-offset", "1"],
        ["groups", "delete", "[bz]*"],
        ["apply", "plan.json"],
    ],
)
def test_the_number_of_several_groups_is_asked_for(servers: str, tmp_path: Path, words: list[str]) -> None:
    journal = {"GROUPKEEPER_JOURNAL": str(tmp_path / "journal.jsonl")}
    where = ["--bootstrap-server", servers]
    path = str(tmp_path / "plan.json")
    plan = ["plan", "reset", "[bz]*", "--topic", "orders:0", "--to-offset", "1", "--save", path]
    assert subprocess.run([*COMMAND, *plan, *where], capture_output=True, check=False).returncode == 0
    before = committed(servers, "billing")
    terminal = Terminal(*[path if word == "plan.json" else word for word in words], "--execute", *where, **journal)
    terminal.read(QUESTION.format(2))
    assert terminal.shown.count("would be ") >= 2  # what it is about stands above
    terminal.press("1\n")
    assert terminal.end() == 1
    assert "nothing was changed" in terminal.shown
    assert committed(servers, "billing") == before


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["groups", "reset", "[bzfr]*", "--topic", "orders:0", "--to-offset", "99"], "(GROUP_IS_ACTIVE)"),
        (["groups", "delete", "[bzr]*"], "(NON_EMPTY_GROUP)"),
        (["apply", "plan.json", "--skip-refused"], "(GROUP_IS_ACTIVE)"),
    ],
    ids=["reset", "delete", "apply"],
)
def test_what_is_known_stands_above_the_question(servers: str, tmp_path: Path, words: list[str], problem: str) -> None:
    commit(servers, "first", {TopicPartition("orders", 0): 10})
    consumer = member(servers, "reader", "payments")
    path, where = str(tmp_path / "plan.json"), ["--bootstrap-server", servers]
    plan = ["plan", "reset", "[bzfr]*", "--topic", "orders:0", "--to-offset", "99", "--save", path]
    assert subprocess.run([*COMMAND, *plan, *where], capture_output=True, check=False).returncode == 0
    terminal = Terminal(*[path if word == "plan.json" else word for word in words], "--execute", *where)
    shown = terminal.read(QUESTION.format(2))
    terminal.press("no\n")
    assert terminal.end() == 1
    consumer.close()
    assert ("2 of these 3 groups would change" in shown) == ("delete" not in words)
    assert ("with an offset above the log end" in shown) == ("reset" in words)
    assert problem in shown


def test_no_progress_erases_a_question(servers: str, tmp_path: Path) -> None:
    journal = {"GROUPKEEPER_JOURNAL": str(tmp_path / "journal.jsonl")}
    terminal = Terminal("groups", "delete", "[bz]*", "--execute", "--bootstrap-server", servers, **journal)
    terminal.read(QUESTION.format(2))
    assert terminal.stays(_PATIENCE_S + 3 * _INTERVAL_S), terminal.read("\x1b[K")
    terminal.press("no\n")
    assert terminal.end() == 1
    assert "reading the groups (" not in terminal.shown


@pytest.mark.parametrize("command", ["reset", "apply", "undo"])
def test_what_is_committed_before_the_answer_is_not_overwritten(servers: str, tmp_path: Path, command: str) -> None:
    journal = {"GROUPKEEPER_JOURNAL": str(tmp_path / "journal.jsonl")}
    where = ["--bootstrap-server", servers]
    path = str(tmp_path / "plan.json")
    tp, groups = TopicPartition("orders", 0), ("first", "second")
    for group_id in groups:
        commit(servers, group_id, {tp: 2})
    before = ["plan", "reset", *groups, "--topic", "orders:0", "--to-offset", "1", "--save", path]
    if command == "undo":
        before = ["groups", "reset", *groups, "--topic", "orders:0", "--to-offset", "1", "--execute"]
    done = subprocess.run([*COMMAND, *before, *where], env={**os.environ, **journal}, capture_output=True, check=False)
    assert done.returncode == 0
    words = {
        "reset": ["groups", "reset", "first", "secon?", "--topic", "orders:0", "--to-offset", "1", "--execute"],
        "apply": ["apply", path, "--execute"],
        "undo": ["undo"],
    }[command]
    terminal = Terminal(*words, *where, **journal)
    terminal.read(QUESTION.format(2))
    commit(servers, "first", {tp: 3})
    terminal.press("2\n")
    assert terminal.end() == 1
    assert committed(servers, "first") == {tp: OffsetAndMetadata(3)}
    assert "and is committed at 3 now" in terminal.shown.replace("\r\n", " ")


def test_ctrl_c_at_the_question(servers: str, tmp_path: Path) -> None:
    journal = {"GROUPKEEPER_JOURNAL": str(tmp_path / "journal.jsonl")}
    before = committed(servers, "billing")
    words = ["groups", "delete", "[bz]*", "--execute", "--bootstrap-server", servers]
    terminal = Terminal(*words, **journal)
    terminal.read(QUESTION.format(2))
    terminal.press("\x03")
    assert terminal.end() == 130
    assert terminal.shown.endswith("interrupted\r\n")
    assert "Traceback" not in terminal.shown
    assert committed(servers, "billing") == before


@pytest.mark.parametrize(("words", "has_colour"), [([], False), (["--color", "always"], True)])
def test_colours_in_a_pipe(servers: str, words: list[str], has_colour: bool) -> None:
    done = subprocess.run(
        [*COMMAND, "groups", "offsets", "zeta", "nope", "--bootstrap-server", servers, *words],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ("\x1b" in done.stdout, "\x1b" in done.stderr) == (has_colour, has_colour)


def test_progress_is_shown_and_ctrl_c_ends_it(silent: str) -> None:
    terminal = Terminal("groups", "list", "--bootstrap-server", silent)
    terminal.read(f"\r\x1b[Kconnecting to {silent} (")
    terminal.press("\x03")
    assert terminal.end() == 130
    assert terminal.shown.endswith("\r\x1b[Kinterrupted\r\n")
    assert "Traceback" not in terminal.shown


def test_watching_shows_no_progress(servers: str) -> None:
    terminal = Terminal("groups", "watch", "none-yet", "--bootstrap-server", servers)
    terminal.read("waiting for group none-yet\r\n")
    assert terminal.stays(_PATIENCE_S + 3 * _INTERVAL_S), terminal.read("\x1b[K")
    terminal.press("\x03")
    assert terminal.end() == 0


def test_no_progress_in_a_pipe_and_an_interrupt_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, ExitStack() as all_ended:
        silent.settimeout(PATIENCE_S)
        command = [*COMMAND, "groups", "list", "--bootstrap-server", f"127.0.0.1:{silent.getsockname()[1]}", "--output"]
        children = {
            output: all_ended.enter_context(
                subprocess.Popen([*command, output], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            )
            for output in ("table", "csv", "json")
        }
        for child in children.values():
            all_ended.callback(child.kill)
            all_ended.enter_context(silent.accept()[0])
        time.sleep(_PATIENCE_S + 3 * _INTERVAL_S)  # at a terminal they would say what they wait for
        for output, child in children.items():
            child.send_signal(signal.SIGINT)
            shown, errors = child.communicate(timeout=PATIENCE_S)
            assert (child.returncode, errors) == (130, b"interrupted\n")
            if output == "json":
                report = json.loads(shown)
                assert (report["groups"], [problem["error"] for problem in report["problems"]]) == ([], ["INTERRUPTED"])
            else:
                assert not shown or shown.count(b"\n") == 1  # the header of CSV


@pytest.mark.parametrize("output", ["table", "json", "csv"])
def test_a_reader_who_has_enough_is_no_failure(servers: str, output: str, tmp_path: Path) -> None:
    words = " ".join([*COMMAND, "groups", "offsets", "--all-groups", "--bootstrap-server", servers, "--output", output])
    done = subprocess.run(
        ["sh", "-c", f"{{ {words}; echo $? > status; }} | true"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (tmp_path / "status").read_text() == "0\n"
    assert "Traceback" not in done.stderr
    assert "Broken pipe" not in done.stderr
