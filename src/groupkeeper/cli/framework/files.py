"""Writing result files: whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path


class Unsaved(Exception):
    """A file could not be written. The text names it and the reason."""


def save(path: str, texts: Iterable[str], *, is_private: bool = False) -> None:
    """Write the texts over whatever was in a file; an existing file is replaced atomically. Raises Unsaved.

    `is_private`: a new file is for its owner only; an existing file keeps its permissions.
    """
    target = Path(path)
    try:
        if target.exists() and not target.is_file():  # a pipe, or /dev/stdout
            with target.open("w", encoding="utf-8") as stream:
                stream.writelines(texts)
            return
        target = target.resolve()  # the file that a link stands for
        beside = _beside(target)
        try:
            with open(beside, "x", encoding="utf-8", opener=_private if is_private else None) as stream:
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


def check_writable(path: str) -> None:
    """Raises Unsaved if `save` would certainly fail; no temporary file remains."""
    target = Path(path)
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not target.is_file():
            return
        beside = _beside(target.resolve())
        beside.open("x").close()
        beside.unlink()
    except OSError as problem:
        raise Unsaved(f"cannot write {path}: {problem.strerror}") from None


def check_directory_writable(path: str | Path) -> None:
    """Raises Unsaved if a directory can't be created, or written to; nothing remains."""
    part = Path(path)
    try:
        while not part.exists():
            part = part.parent
        os.rmdir(tempfile.mkdtemp(prefix=".groupkeeper-", dir=part))
    except OSError as problem:
        raise Unsaved(f"cannot write {path}: {problem.strerror}") from None


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
