"""The base of the tour: a broker in a child process and the installed commands, run and shown."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from groupkeeper import shell

READY_WITHIN_S = 20.0
COMMAND_WITHIN_S = 30.0


class TourFailed(Exception):
    """A step did not do what the tour promises; the text has the reason."""


def emphasised(text: str) -> str:
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text


def say(text: str = "") -> None:
    print(text, flush=True)


def command_path(name: str) -> str:
    """Where the command is installed: beside this Python, otherwise on PATH."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise TourFailed(f"the command {name} is not installed beside {sys.executable}")
    return found


def wait_for_address(broker: subprocess.Popen[str]) -> str:
    """The host:port in the broker's ready line; its other lines are dropped."""
    assert broker.stdout is not None
    guard = threading.Timer(READY_WITHIN_S, broker.kill)
    guard.start()
    try:
        for line in broker.stdout:
            if found := re.search(r"[\w.-]+:\d{2,5}\b", line):
                return found.group()
    finally:
        guard.cancel()
    raise TourFailed(f"the broker did not get ready within {READY_WITHIN_S:.0f} s")


@contextmanager
def running_broker() -> Iterator[str]:
    """A broker on a free port with its files in a temporary folder; both are gone afterwards. Gives host:port."""
    folder = Path(tempfile.mkdtemp(prefix="groupkeeper-demo-"))
    log = folder / "broker.log"
    # A rebalance waits that long for members that start together; Kafka's default of 3 s suits production.
    settings = ["--property", "group.initial.rebalance.delay.ms=300"]
    with log.open("w") as errors:
        broker = subprocess.Popen(
            [command_path("groupkeeper"), "broker", "--port", "0", "--data", str(folder / "kafka-logs"), *settings],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,  # Ctrl-C reaches the tour only, which then stops its broker in order
        )
    try:
        yield wait_for_address(broker)
    except TourFailed:
        say("\nThe broker's last words:\n" + "\n".join(log.read_text().splitlines()[-10:]))
        raise
    finally:
        stop(broker)
        shutil.rmtree(folder, ignore_errors=True)


def stop(broker: subprocess.Popen[str]) -> None:
    broker.terminate()
    try:
        broker.wait(timeout=5)
    except subprocess.TimeoutExpired:
        broker.kill()
        broker.wait()


class Terminal:
    """Runs the installed commands against one broker and shows them as a reader would type them."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.steps = 0

    def show(self, meaning: str, command: str, *, expect: str = "", refused: bool = False) -> str:
        """Runs `command`, shows it with its output and what that means, and gives the output back.

        Raises:
            TourFailed: `expect` is not in the output; the exit status is not 0 although nothing should be refused.
        """
        self.steps += 1
        name, *arguments = shlex.split(command)
        where = ["--bootstrap-server", self.address]
        # The drop-in takes its options in any order; groupkeeper's belong to the last subcommand.
        whole = [name, *arguments, *where] if name == "groupkeeper" else [name, *where, *arguments]
        shown = shell.text(whole)
        say()
        say(emphasised(f"[{self.steps}] $ {shown}"))
        started = time.monotonic()
        ended = subprocess.run(
            [command_path(name), *whole[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_WITHIN_S,
            env={"GROUPKEEPER_JOURNAL": "off", **os.environ, "PYTHONUNBUFFERED": "1"},
            check=False,
        )
        say("\n".join(line.rstrip() for line in ended.stdout.strip("\n").splitlines()))
        say(f"  -> {meaning} ({time.monotonic() - started:.1f} s)")
        if (ended.returncode != 0 and not refused) or expect not in ended.stdout:
            raise TourFailed(f"'{shown}' ended with {ended.returncode} and should have shown {expect!r}")
        return ended.stdout
