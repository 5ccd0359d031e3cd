"""With GROUPKEEPER_COMPILE=1 the wheel has the modules of compiled.txt as machine code (docs/design/compiled.md)."""

import os
import sys
from pathlib import Path

from setuptools import setup

SOURCES = Path("src")


def extensions() -> list:
    if os.environ.get("GROUPKEEPER_COMPILE") != "1" or "bdist_wheel" not in sys.argv:  # not for its metadata only
        return []
    from mypyc.build import mypycify

    patterns = [line for line in Path("compiled.txt").read_text().splitlines() if line and not line.startswith("#")]
    modules = [str(path) for pattern in patterns for path in sorted(SOURCES.glob(pattern))]
    made = mypycify(
        ["--config-file=pyproject.toml", "--follow-imports=silent", *modules],  # others need extras, to be checked
        opt_level="2",
        debug_level="0",
        multi_file=True,
        group_name="groupkeeper",
        target_dir="build/compiled-c",
    )
    if os.name == "posix":
        for one in made:  # no other library replaces its functions, so its own calls go straight to them
            one.extra_compile_args += ["-fvisibility=hidden", "-fno-semantic-interposition"]
    return made


setup(ext_modules=extensions())
