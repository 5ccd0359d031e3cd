"""The tables' directory, and its checks before clusters are asked and Spark starts."""

from __future__ import annotations

import os
import re
from argparse import ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Any

from groupkeeper.cli.framework.files import Unsaved, check_directory_writable
from groupkeeper.cli.framework.output import complain
from groupkeeper.cli.pipeline.parts import import_part
from groupkeeper.cli.pipeline.privacy import privacy_of
from groupkeeper.pipeline.checkpoints.folders import local_path
from groupkeeper.pipeline.errors import SourceError

if TYPE_CHECKING:
    from groupkeeper.pipeline.storage.ledger import NextOffsets

_URL = re.compile(r"([a-z][a-z0-9+.-]+:)/(?!/)")
"""URLs in Java's form, which look like paths."""


def directory(text: str) -> str:
    """The value of --tables."""
    if not text.strip():
        raise ArgumentTypeError("expected a directory, or a URL that Spark writes to")
    if (url := _URL.match(text)) is not None:
        raise ArgumentTypeError(f"{text!r}: a URL begins with {url[1]}// ({url[1]}///PATH on this machine)")
    local = local_path(text)
    part = text if local is None else str(local)
    while part and not os.path.isdir(part):
        if os.path.isfile(part):
            raise ArgumentTypeError(f"{part!r} is a file, not a directory")
        part = os.path.dirname(part)
    return text


def check_directory(options: Namespace) -> None:
    """Refuses a directory to which a run could not write. One that is elsewhere is checked by the run.

    Raises SourceError when another run writes to it, or it cannot be read.
    """
    try:
        given = import_part("kafka.options").parse_privacy(privacy_of(options))
    except SourceError as error:
        options.refuse(f"argument --privacy: {str(error).removeprefix('privacy: ')}")
        raise
    try:
        _check_here(options, given)
    except OSError as error:
        raise SourceError(f"{options.tables} cannot be used: {error.strerror or error}") from error


def _check_here(options: Namespace, given: Any) -> None:
    files = import_part("storage.files")
    root = local_path(options.tables)
    if root is None:
        return
    is_there = root.is_dir()
    found = import_part("storage.stored").Stored(str(root)) if is_there else None
    known = found.privacy if found is not None and found.next_offsets else None
    if hasattr(options, "privacy_key"):
        try:
            import_part("governance.privacy").chosen(given, known, options.tables)
        except SourceError as error:
            option = "privacy" if getattr(options, "privacy", None) else "privacy-key"
            options.refuse(f"argument --{option}: {str(error).removeprefix('privacy: ')}")
    ledger = import_part("storage.ledger")
    try:
        check_directory_writable(root)
    except Unsaved as problem:
        raise SourceError(str(problem)) from None
    if (root / ledger.ROOT).is_dir():
        with files.LocalFiles(root).lock():
            pass
        return
    # Marks of file systems and of version control are no content.
    names = [name for name in os.listdir(root) if not name.startswith(".") and name != "lost+found"] if is_there else ()
    if names:
        ledger.check_foreign(names, options.tables)
        complain(f"note: {options.tables} is not empty: the tables are written beside its files\n")


def read_offsets(tables: str) -> NextOffsets:
    """The next offsets to read, by cluster and partition; none where the tables are new, or elsewhere."""
    root = local_path(tables)
    if root is None or not root.is_dir():
        return {}
    offsets: NextOffsets = import_part("storage.stored").Stored(str(root)).next_offsets
    return offsets
