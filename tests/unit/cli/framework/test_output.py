"""Output that cannot be written or encoded: one line and an exit status, never a traceback."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from groupkeeper.cli.framework.output import dismiss

FULL = Path("/dev/full")
TOOLS = {
    "groupkeeper": "main",
    "kafka-consumer-groups": "dropin.kafka_consumer_groups",
    "kafka-get-offsets": "dropin.kafka_get_offsets",
    "kafka-groups": "dropin.kafka_groups",
}


def call(line: str, redirection: str, **environment: str) -> subprocess.CompletedProcess[str]:
    tool, *words = line.split()
    program = f"from groupkeeper.cli.{TOOLS[tool]} import main; raise SystemExit(main())"
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )


LINES = [
    "groupkeeper --help",
    "groupkeeper --version",
    "groupkeeper groups list --help",
    "groupkeeper broker --help",
    "groupkeeper completion bash",
    "groupkeeper groups list --output json --timeout 300ms --bootstrap-server 127.0.0.1:1",
    "kafka-consumer-groups --version",
    "kafka-groups --version",
    "kafka-get-offsets --version",
    "kafka-consumer-groups --validate-regex a",
]


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("line", LINES)
def test_a_full_disk_is_one_line(line: str, unbuffered: str) -> None:
    done = call(line, f">{FULL}", PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stderr) == (1, "cannot write the output: No space left on device\n")


@pytest.mark.parametrize("line", LINES)
def test_a_closed_output_is_one_line(line: str) -> None:
    done = call(line, ">&-")
    assert (done.returncode, done.stderr) == (1, "cannot write the output: Bad file descriptor\n")


def test_a_closed_standard_error_changes_no_exit_status() -> None:
    assert call("kafka-groups --list", "2>&-").returncode == 1
    assert call("groupkeeper groups list", "2>&-").returncode == 2
    assert call("kafka-groups --help", "2>&-").returncode == 1


def test_a_reader_who_has_enough_is_no_failure() -> None:
    done = call("groupkeeper --help", "| true")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "line", ["", " broker", " groups", " context", *(f" groups {name}" for name in ("list", "offsets", "reset"))]
)
def test_help_is_plain_ascii(line: str) -> None:
    done = call(f"groupkeeper{line} --help", "", PYTHONIOENCODING="ascii:strict")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")
    assert "\\" not in done.stdout


def test_letters_that_the_output_lacks() -> None:
    done = call("kafka-consumer-groups --validate-regex 東京", "", PYTHONIOENCODING="ascii:strict")
    assert (done.returncode, done.stdout) == (0, "The regular expression `??` is valid.\n")


PAIRS = """
from groupkeeper.cli.framework.output import complain_and_say, flush
def pairs():
    yield "note 1\\n", "row 1\\n"
    yield "note 2\\n", "row 2\\n"
    raise LookupError
try:
    complain_and_say(pairs())
except LookupError:
    flush()
"""


def test_notes_stand_before_their_rows_where_both_can_be_seen() -> None:
    run = subprocess.run([sys.executable, "-c", PAIRS], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert run.stdout == "note 1\nrow 1\nnote 2\nrow 2\n"


def test_notes_and_rows_for_different_places() -> None:
    run = subprocess.run([sys.executable, "-c", PAIRS], capture_output=True, text=True)
    assert (run.stdout, run.stderr, run.returncode) == ("row 1\nrow 2\n", "note 1\nnote 2\n", 0)


HALF_MADE = """
import sys
from groupkeeper.cli.framework.output import written


class Half:
    def __del__(self):
        self.never_set


async def step():
    pass


def run():
    begun = step(), Half()
    raise KeyboardInterrupt


sys.exit(written(run, unencodable="strict"))
"""


def test_what_an_interrupt_left_half_made_goes_silently() -> None:
    ended = subprocess.run([sys.executable, "-c", HALF_MADE], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


INTERRUPTED_FINALIZER = """
import signal, sys, time
from groupkeeper.cli.framework.output import written


class Part:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def run():
    part = Part()
    del part
    time.sleep(600)
    return 0


sys.exit(written(run, unencodable="strict"))
"""


def test_an_interrupt_inside_a_finalizer_is_not_lost() -> None:
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED_FINALIZER], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_what_an_interrupt_left_half_made_is_not_told(recwarn: pytest.WarningsRecorder) -> None:
    """Also where another failure, whose frames have it, was on its way."""
    gc.collect()  # what tests before this one left
    recwarn.clear()

    async def never() -> None: ...

    def fails() -> None:
        left = never()
        raise RuntimeError(str(left))

    def interrupted() -> None:
        try:
            fails()
        except RuntimeError:
            raise KeyboardInterrupt  # noqa: B904

    with pytest.raises(KeyboardInterrupt) as caught:
        interrupted()
    interrupt = caught.value
    del caught
    dismiss(interrupt)
    assert interrupt.__context__ is None
    assert [str(each.message) for each in recwarn] == []
