"""Writing files of results: whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


class Unsaved(Exception):
    """A file could not be written. The text names it and the reason."""


def save(path: str, texts: Iterable[str]) -> None:
    """Write the texts over whatever was in a file; what stands there is replaced in one step. Raises Unsaved."""
    target = Path(path)
    try:
        if target.exists() and not target.is_file():  # a pipe, or /dev/stdout
            with target.open("w", encoding="utf-8") as stream:
                stream.writelines(texts)
            return
        target = target.resolve()  # the file that a link stands for
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            with beside.open("x", encoding="utf-8") as stream:
                stream.writelines(texts)
            if target.exists():
                beside.chmod(target.stat().st_mode & 0o777)
            beside.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    except OSError as problem:
        raise Unsaved(f"cannot write {path}: {problem.strerror}") from None
