"""Commands to copy: a shell reads each name as it is."""

import shutil
import subprocess

import pytest

from groupkeeper.shell import text

NAMES = [
    "orders",
    "two\nlines",
    "tab\tand 'quote'",
    "back\\slash\x1b[31m",
    "$HOME `id` \x07",
    "東京\u0085\u202e",
    "",
    "-x",
    "\U0001f600\n",
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_shell_reads_what_was_written() -> None:
    typed = text(["printf", r"%s\0", *NAMES])
    assert typed.isprintable()  # one line, to be copied from a page or a terminal
    read = subprocess.run(["bash", "-c", typed], capture_output=True, check=True, timeout=20).stdout
    assert read.decode().split("\0")[:-1] == NAMES
