"""Completion in real shells at a terminal: what is typed and then a tab gives."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest

from groupkeeper import SyncAdmin
from groupkeeper.cli.framework.commands import COMMANDS
from groupkeeper.cli.framework.completion import DROP_INS
from groupkeeper.cli.main import main
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition
from groupkeeper.testing.background import BackgroundBroker

GROUPS = ["billing", "odd one", "quo'te", "東京", "-x"]
SHARED = "shared"
PATIENCE_S = 25.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a user who has a context in use, with groups."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "client.properties").write_text("client.id=me\n")
    environment = {
        **os.environ,
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
    }
    with BackgroundBroker() as broker:
        set_up(broker.bootstrap_servers)
        add = ["groupkeeper", "context", "add", "local", "--bootstrap-server", broker.bootstrap_servers]
        subprocess.run(add, env=environment, check=True, timeout=30, stdout=subprocess.DEVNULL)
        yield environment


def set_up(servers: str) -> None:
    with SyncAdmin(servers) as admin:
        tp = TopicPartition("orders", 0)
        admin.create_topics([NewTopic("orders", 1)]).all()
        admin.alter_share_group_offsets(SHARED, {tp: 0}).all()
        for group_id in GROUPS:
            admin.alter_consumer_group_offsets(group_id, {tp: OffsetAndMetadata(0)}).all()


def servers_of(home: dict[str, str]) -> str:
    """Those of the context."""
    listed = subprocess.run(
        ["groupkeeper", "context", "list", "--output", "json"],
        env=home, check=True, capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    servers: str = json.loads(listed.stdout)["contexts"][0]["bootstrap_server"]
    return servers


def candidates(environment: dict[str, str], *words: str, of: str = "__complete") -> list[str]:
    with (
        patch.dict(os.environ, environment),
        redirect_stdout(StringIO()) as shown,
        redirect_stderr(StringIO()) as errors,
    ):
        status = main([of, *words])
    assert (status, errors.getvalue()) == (0, "")
    return [line.partition("\t")[0] for line in shown.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ([""], list(COMMANDS)),
        (["groups", "de"], ["describe", "delete-offsets", "delete"]),
        (["groups", "offsets", "--so"], ["--sort"]),
        (["groups", "offsets", "--output", ""], ["table", "json", "csv"]),
        (["groups", "offsets", "--output=c"], ["--output=csv"]),
        (["groups", "offsets", ""], sorted([*GROUPS, SHARED])),
        (["groups", "offsets", "--", "-"], ["-x"]),
        (["groups", "offsets", "billing", "b"], []),
        (["groups", "offsets", "--topic", ""], ["orders"]),
        (["groups", "list", "--state", "Stable,E"], ["Stable,Empty"]),
        (["groups", "list", "--state", "N"], ["NotReady"]),
        (["groups", "list", "--type", "S"], ["Share", "Streams"]),
        (["groups", "describe", "--type", "S"], ["Share", "Streams"]),
        (["groups", "offsets", "--state", "N"], ["NotReady"]),
        (["plan", "reset", "--type", "C"], ["Classic", "Consumer"]),
        (["plan", "clone", "billing", "--from-context", ""], ["local"]),
        (["pipeline", "snapshot", "--context", "l"], ["local"]),
        (["--context", "local", "groups", "offsets", "b"], ["billing"]),
        (["--context", ""], ["local"]),
        (["--output", ""], ["table", "json", "csv"]),
        (["groups", "--context", ""], ["local"]),
        (["groups", "list", "--context", "l"], ["local"]),
        (["groups", "list", "--command-config", ""], [":files"]),
        (["groups", "delete-offsets", "billing", ""], []),
        (["context", "use", ""], ["local"]),
        (["context", "add", ""], []),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["nonsense", ""], list(COMMANDS)),
        (["groups", "offsets", "--bootstrap-server", "127.0.0.1:1", "b"], []),
        (["groups", "offsets", "--context", "nope", "b"], []),
    ],
)
def test_candidates(home: dict[str, str], typed: list[str], expected: list[str]) -> None:
    assert candidates(home, *typed) == expected


@pytest.mark.parametrize("command", [["check"], ["pipeline", "as-of"]])
def test_names_are_those_of_a_cluster_with_a_name(home: dict[str, str], command: list[str]) -> None:
    servers = servers_of(home)
    elsewhere = {**home, "XDG_CONFIG_HOME": "/nowhere"}
    assert candidates(elsewhere, *command, "--bootstrap-server", f"c={servers}", "--group", "bi") == ["billing"]
    assert candidates(home, *command, "--bootstrap-server", "c=127.0.0.1:1", "--group", "bi") == []


def test_options_that_are_given_are_not_offered_again(home: dict[str, str]) -> None:
    offered = candidates(home, "groups", "offsets", "--topic", "orders", "--sort", "lag", "--")
    assert "--topic" in offered
    assert "--sort" not in offered


def test_ids_of_changes(home: dict[str, str], tmp_path: Path) -> None:
    environment = {**home, "GROUPKEEPER_JOURNAL": str(tmp_path / "journal.jsonl")}
    assert candidates(environment, "undo", "") == []
    for words in (["groups", "delete-offsets", "billing", "--topic", "orders", "--execute"], ["undo", "--execute"]):
        subprocess.run(["groupkeeper", *words], env=environment, check=True, timeout=30, capture_output=True)
    history = ["groupkeeper", "history", "--output", "json"]
    done = subprocess.run(history, env=environment, check=True, timeout=30, capture_output=True)
    newest_first = [row["id"] for row in json.loads(done.stdout)["changes"]][::-1]
    assert len(newest_first) == 2
    assert candidates(environment, "undo", "") == candidates(environment, "history", "") == newest_first
    assert candidates({**environment, "GROUPKEEPER_JOURNAL": "off"}, "undo", "") == []
    assert candidates({**environment, "GROUPKEEPER_JOURNAL": str(tmp_path)}, "undo", "") == []


def of_tool(environment: dict[str, str], *words: str) -> list[str]:
    return candidates(environment, *words, of="__complete_tool")


def test_candidates_of_drop_ins(home: dict[str, str]) -> None:
    servers = servers_of(home)
    asked = ["kafka-consumer-groups", "--bootstrap-server", servers]
    assert of_tool(home, *asked, "--describe", "--group", "") == sorted(GROUPS)
    assert of_tool(home, "kafka-share-groups", *asked[1:], "--describe", "--group", "") == [SHARED]
    assert of_tool(home, "kafka-streams-groups", *asked[1:], "--describe", "--group", "") == []
    assert of_tool(home, *asked, "--reset-offsets", "--topic", "o") == ["orders"]
    assert of_tool(home, "kafka-consumer-groups", "--group", "b") == []  # no cluster is named
    assert of_tool(home, "kafka-consumer-groups", "--to-e") == ["--to-earliest"]
    assert of_tool(home, "kafka-consumer-groups", "--command-config", "") == [":files"]
    assert of_tool(home, "kafka-consumer-groups", "--state", "--l") == ["--list"]  # its value may be left out
    assert of_tool(home, "kafka-consumer-groups", "b") == of_tool(home, "no-such-tool", "--") == of_tool(home) == []
    once = of_tool(home, *asked, "--group", "billing", "--describe", "--")
    assert "--group" in once
    assert "--describe" not in once
    assert "--bootstrap-server" not in once


def test_every_drop_in_is_completed(home: dict[str, str]) -> None:
    project = tomllib.loads((Path(__file__).resolve().parents[3] / "pyproject.toml").read_text())["project"]
    assert sorted(DROP_INS) == sorted(set(project["scripts"]) - {"groupkeeper"})
    for tool in DROP_INS:
        assert "--bootstrap-server" in of_tool(home, tool, "--")


class Terminal:
    """A shell at a terminal."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(environment["HOME"])
            os.execvpe(command[0], command, environment)
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait_for(self, pattern: str) -> str:
        """The first match in what is shown from now on."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            found = re.search(pattern, re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.shown))
            if found:
                self.shown = ""
                return found[0]
            if select.select([self._terminal], [], [], 0.2)[0]:
                self.shown += os.read(self._terminal, 65536).decode(errors="replace")
        raise AssertionError(f"not shown: {pattern}\n{self.shown}")

    def close(self) -> None:
        os.close(self._terminal)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


STARTS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(groupkeeper completion bash)"),
    "zsh": (
        ["zsh", "-f", "-i"],
        "autoload -U compinit; compinit -u -d /dev/null; source <(groupkeeper completion zsh)",
    ),
}
# What is typed before the tab, and the arguments that the command then gets.
TYPED_TO_GROUPKEEPER = [
    ("groups desc", ["groups", "describe"]),
    ("groups offsets --sor", ["groups", "offsets", "--sort"]),
    ("groups offsets bil", ["groups", "offsets", "billing"]),
    ("groups offsets od", ["groups", "offsets", "odd one"]),
    ("groups offsets quo", ["groups", "offsets", "quo'te"]),
    ("groups offsets 東", ["groups", "offsets", "東京"]),
    ("groups list --command-config cl", ["groups", "list", "--command-config", "client.properties"]),
    ("groups offsets --output=js", ["groups", "offsets", "--output=json"]),
    ("context use lo", ["context", "use", "local"]),
]
TYPED = [("groupkeeper", *each) for each in TYPED_TO_GROUPKEEPER] + [
    ("kafka-consumer-groups", "--to-e", ["--to-earliest"]),
    ("kafka-get-offsets", "--command-config cl", ["--command-config", "client.properties"]),
]


@pytest.fixture(scope="module", params=sorted(STARTS))
def terminal(request: pytest.FixtureRequest, home: dict[str, str]) -> Iterator[Terminal]:
    """A shell in which `shown` prints its arguments as JSON, and completes as groupkeeper does."""
    command, start = STARTS[request.param]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    shell = Terminal(command, home)
    shell.type("PS1='ready$ '; PROMPT='ready$ '\n")
    shell.type(f"{start}; echo star''ted\n")
    shell.wait_for("started")
    yield shell
    shell.close()


@pytest.mark.parametrize(("command", "typed", "expected"), TYPED)
def test_a_tab_at_a_terminal(terminal: Terminal, command: str, typed: str, expected: list[str]) -> None:
    # The command line is finished by going to its front and putting another command there.
    terminal.type(f"{command} {typed}\t")
    show = f'{sys.executable} -c \'import json, sys; print("<" + json.dumps(sys.argv[2:]) + ">")\' '
    terminal.type(f"\x01{show}\x05\n")
    assert json.loads(terminal.wait_for(r"<\[.*?\]>")[1:-1]) == expected


@pytest.mark.parametrize(("command", "typed", "expected"), TYPED)
def test_fish(home: dict[str, str], command: str, typed: str, expected: list[str]) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    script = f"groupkeeper completion fish | source; complete -C '{command} {typed}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], env=home, cwd=home["HOME"], capture_output=True, text=True, timeout=50
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.partition("\t")[0] for line in done.stdout.splitlines()] == [expected[-1]]
