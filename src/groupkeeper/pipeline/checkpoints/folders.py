"""Folders with checkpoints, on this machine or where Spark's Hadoop can read them."""

from __future__ import annotations

import contextlib
import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlparse

from groupkeeper.pipeline.errors import SourceError, first_line

if TYPE_CHECKING:
    from pyarrow import fs
    from pyspark.sql import SparkSession


class Folder(Protocol):
    """Paths are below the folder, with "/" between their parts."""

    @property
    def path(self) -> str:
        """The folder itself, for messages."""

    def times(self, path: str) -> dict[str, int] | None:
        """The names in a directory, and when each was last written, in ms; None: there is no such directory."""

    def read(self, path: str) -> str | None:
        """A file's text; None when it is not there."""


def is_pattern(path: str) -> bool:
    """Whether the path is a pattern, which several folders may match."""
    return any(sign in path for sign in "*?[{") if "://" in path else glob.has_magic(path)


def local_path(path: str) -> Path | None:
    """The path on this machine; None: the path or URI is elsewhere."""
    parsed = urlparse(path)
    if parsed.scheme == "file" and parsed.netloc in ("", "localhost"):
        return Path(unquote(parsed.path))
    return Path(path) if "://" not in path else None


def arrow_path(place: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path or URI for pyarrow, and the path in it. Raises SourceError for an unknown scheme."""
    import pyarrow as pa
    from pyarrow import fs

    try:
        return fs.FileSystem.from_uri(place) if "://" in place else (fs.LocalFileSystem(), place)
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"{place}: {error}") from None


def find_folders(path: str, spark: SparkSession | None = None) -> list[Folder]:
    """The folder at the path, or all that match the pattern. Raises SourceError when there is none, or when only Spark
    can read the path and `spark` is None.
    """
    local = local_path(path)
    if local is not None:
        matching = sorted(glob.glob(str(local))) if is_pattern(path) else [str(local)]
        found: list[Folder] = [LocalFolder(Path(each)) for each in matching if os.path.isdir(each)]
    elif spark is None:
        raise SourceError(
            f"{path}: only Spark reaches it: 'groupkeeper pipeline snapshot --checkpoint' reads it, this "
            "a folder of this machine"
        )
    else:
        found = _hadoop_folders(spark, path)
    if not found:
        raise SourceError(f"{path}: {'no folder matches' if is_pattern(path) else 'there is no such folder'}")
    return found


class LocalFolder:
    """A folder of this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.path = str(root)

    def times(self, path: str) -> dict[str, int] | None:
        found = {}
        try:
            for name in os.listdir(self._root / path):
                with contextlib.suppress(FileNotFoundError):  # a running query has renamed or removed it meanwhile
                    found[name] = (self._root / path / name).stat().st_mtime_ns // 1_000_000
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise SourceError(f"{self.path}/{path} cannot be read: {error.strerror}") from None
        return found

    def read(self, path: str) -> str | None:
        try:
            return (self._root / path).read_text(errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise SourceError(f"{self.path}/{path} cannot be read: {error.strerror}") from None


class HadoopFolder:
    """A folder that Spark's Java can read."""

    def __init__(self, jvm: Any, files: Any, path: str) -> None:
        self.path = path
        self._files = files
        self._path_type = jvm.org.apache.hadoop.fs.Path
        self._utils = jvm.org.apache.commons.io.IOUtils

    def times(self, path: str) -> dict[str, int] | None:
        at = self._path_type(f"{self.path}/{path}")
        if not self._files.exists(at):
            return None
        return {each.getPath().getName(): int(each.getModificationTime()) for each in self._files.listStatus(at)}

    def read(self, path: str) -> str | None:
        at = self._path_type(f"{self.path}/{path}")
        if not self._files.exists(at):
            return None
        stream = self._files.open(at)
        try:
            return str(self._utils.toString(stream, "UTF-8"))
        finally:
            stream.close()


def _hadoop_folders(spark: SparkSession, path: str) -> list[Folder]:
    from py4j.protocol import Py4JError

    from groupkeeper.pipeline.runtime.executors import context_of

    context = context_of(spark)
    if context is None:
        raise SourceError(f"{path}: with --remote, checkpoints must be folders accessible from this machine")
    jvm: Any = context._jvm
    try:
        at = jvm.org.apache.hadoop.fs.Path(path)
        files = at.getFileSystem(context._jsc.hadoopConfiguration())
        found = files.globStatus(at) or []
        return [HadoopFolder(jvm, files, each.getPath().toString()) for each in found if each.isDirectory()]
    except Py4JError as error:
        raise SourceError(f"{path} is out of reach: {first_line(error)}") from None
