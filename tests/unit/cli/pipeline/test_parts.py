"""How modules of the pipeline are loaded."""

import os
import subprocess
import sys

import pytest

_ASK = """
import os, re
from groupkeeper.cli.pipeline.parts import import_part
import_part("tables")
import pyarrow
kept = pyarrow.array(range(100_000))
size, has_huge = 0, False
for line in open("/proc/self/smaps"):
    if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
        size = int(found[2], 16) - int(found[1], 16)
    elif line.startswith("VmFlags:") and size >= 1 << 30:
        has_huge |= "hg" in line.split()
print(has_huge, os.environ["MIMALLOC_ALLOW_THP"])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc/self/smaps")
def test_memory_of_arrow_is_not_of_huge_pages() -> None:
    assert _asked({}) == ["False", "0"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc/self/smaps")
def test_what_the_user_says_of_huge_pages_stays() -> None:
    assert _asked({"MIMALLOC_ALLOW_THP": "1"})[1] == "1"


def _asked(given: dict[str, str]) -> list[str]:
    clean = {name: value for name, value in os.environ.items() if name != "MIMALLOC_ALLOW_THP"}
    env = {**clean, **given}
    asked = subprocess.run([sys.executable, "-c", _ASK], env=env, capture_output=True, text=True, check=True)
    return asked.stdout.split()
