"""The files of an output directory: changes that readers see at once, on this machine and on file systems of Hadoop."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import shutil
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from py4j.protocol import Py4JError, Py4JJavaError

from groupkeeper.pipeline.checkpoints.folders import local_path
from groupkeeper.pipeline.errors import SourceError, first_line
from groupkeeper.pipeline.storage.lease import Busy, Lease

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_STALE_S = 2 * 86400
"""Staged files older than this are of a run that was killed."""

_FOOTER = 1 << 16
_CONDITIONAL = "fs.option.create.conditional.overwrite"

_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)


class Files(Protocol):
    """Paths are below the output directory, with "/" between their parts; "" is the directory itself."""

    def lock(self) -> contextlib.AbstractContextManager[None]:
        """Keeps other runs out until the block ends. Raises Busy."""

    def check_lock(self) -> None:
        """Raises Busy when the lock was lost, so that other runs may write."""

    def names(self, path: str) -> list[str]:
        """The names in a directory; none if it doesn't exist."""

    def read(self, path: str) -> str:
        """A file's text."""

    def footer(self, path: str) -> pq.FileMetaData:
        """The metadata in the footer of a parquet file."""

    def write(self, path: str, content: bytes) -> None:
        """Writes a file, or replaces it."""

    def write_new(self, path: str, text: str) -> bool:
        """Creates a durable file atomically; False if it exists already."""

    def sync(self, paths: Sequence[str]) -> None:
        """Flushes files and directories to the disk, before a ledger entry names them; missing ones are left out."""

    def move(self, source: str, target: str) -> None:
        """Move a file; the target's directory is made. Does nothing if the file doesn't exist."""

    def status(self, path: str) -> tuple[int, int]:
        """A file's size in bytes, and when it was written in ms. Raises FileNotFoundError."""

    def replace(self, source: str, target: str) -> None:
        """Replace the directory `target` by `source`; the old directory is removed."""

    def remove(self, path: str) -> None:
        """Remove a file or directory, if it is there."""

    def clean(self, path: str, own: str) -> None:
        """Remove the directory `own` below `path`, and what killed runs left there."""


def files_of(spark: SparkSession, directory: str) -> Files:
    """The files of an output directory. Raises SourceError when it cannot be accessed."""
    from groupkeeper.pipeline.runtime.executors import context_of  # PySpark: not while a command starts

    local = local_path(directory)
    if local is not None:
        return LocalFiles(local)
    if context_of(spark) is None:
        raise SourceError(f"{directory}: with --remote, the directory must also be accessible from this machine")
    return HadoopFiles(spark, directory)


class LocalFiles:
    """Files on this machine. Directories are exchanged atomically if the platform can (Linux), else by two renames,
    between which the table is missing for a moment.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        import fcntl

        path = self._root / "_groupkeeper" / "lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Busy(
                    f"{self._root}: another run writes to it: wait for its end (follow is ended by Ctrl-C or SIGTERM), "
                    "or choose another directory"
                ) from None
            yield

    def check_lock(self) -> None:
        """Does nothing: the system keeps the lock until this process ends."""

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self._root / path))
        except FileNotFoundError:
            return []

    def read(self, path: str) -> str:
        return (self._root / path).read_text()

    def footer(self, path: str) -> pq.FileMetaData:
        from pyarrow.parquet import read_metadata  # not while a command starts

        return read_metadata(self._root / path)

    def write(self, path: str, content: bytes) -> None:
        (self._root / path).parent.mkdir(parents=True, exist_ok=True)
        (self._root / path).write_bytes(content)

    def write_new(self, path: str, text: str) -> bool:
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        with beside.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(beside, target)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            if target.exists():  # the lock keeps other runs from writing it now
                return False
            os.replace(beside, target)
        finally:
            beside.unlink(missing_ok=True)
        _sync(target.parent)
        return True

    def sync(self, paths: Sequence[str]) -> None:
        for path in paths:
            at = self._root / path
            for each in (*(at.iterdir() if at.is_dir() else ()), at):
                if each.exists():
                    _sync(each)

    def move(self, source: str, target: str) -> None:
        to = self._root / target
        to.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.replace(self._root / source, to)

    def replace(self, source: str, target: str) -> None:
        new, old = self._root / source, self._root / target
        for name in os.listdir(new):
            if not name.endswith(".parquet"):  # checksums and markers, which other readers take for data
                (new / name).unlink()
        if not old.exists():
            os.rename(new, old)
        elif not _exchanged(new, old):
            aside = new.with_name(f"{new.name}.old")
            os.rename(old, aside)
            os.rename(new, old)
            shutil.rmtree(aside)
        shutil.rmtree(new, ignore_errors=True)

    def status(self, path: str) -> tuple[int, int]:
        found = (self._root / path).stat()
        return found.st_size, found.st_mtime_ns // 1_000_000

    def link(self, source: str, target: str) -> None:
        """Links a file to a second path; copies it if the file system has no links."""
        try:
            os.link(self._root / source, self._root / target)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            shutil.copyfile(self._root / source, self._root / target)

    def remove(self, path: str) -> None:
        target = self._root / path
        if target.is_dir():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)

    def clean(self, path: str, own: str) -> None:
        self.remove(path)  # the lock keeps other runs out


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchanges two directories atomically; False if the platform cannot do that. Raises OSError."""
    if sys.platform != "linux":
        return False
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(other))


_NO_SCHEME = re.compile(r'No (?:Abstract)?FileSystem (?:configured )?for scheme:? "?([^\s"]+)')
_NO_CLASS = re.compile(r"ClassNotFoundException: Class (org\.apache\.hadoop\.fs\.(\w+)\.\S+) not found")
_MODULES = {"s3a": "aws", "azurebfs": "azure"}
"""Hadoop's modules, by the package of their file systems."""


def explained(reason: str, hadoop: str) -> str:
    """The reason, with a hint if Hadoop has no file system for the URL; `hadoop`: its version."""
    if found := _NO_SCHEME.search(reason):
        return f"Hadoop knows no {found[1]}://{'; S3 is s3a://' if found[1].startswith('s3') else ''}"
    if found := _NO_CLASS.search(reason):
        module = _MODULES.get(found[2])
        package = f"org.apache.hadoop:hadoop-{module}:{hadoop}" if module else "GROUP:NAME:VERSION"
        return f"Spark has no {found[1]}: give its package, --conf spark.jars.packages={package}"
    return reason


class HadoopFiles:
    """Files that only Spark can access. A directory is replaced by two renames. A lease keeps other runs out. Only one
    run can write an entry of the ledger, if the store creates a file for one writer only (S3), or does not rename onto
    an existing file (HDFS).
    """

    def __init__(self, spark: SparkSession, directory: str) -> None:
        from pyspark.errors import PySparkException

        jvm = spark.sparkContext._jvm
        assert jvm is not None
        self._path_type = jvm.org.apache.hadoop.fs.Path
        self._input = jvm.org.apache.commons.io.IOUtils
        self._root = directory.rstrip("/")
        try:
            configuration = spark.sparkContext._jsc.hadoopConfiguration()
            self._files = self._path_type(directory).getFileSystem(configuration)
            # An object store's way to let only one writer create a file (S3 since Hadoop 3.4.2).
            self._is_conditional = bool(self._files.hasPathCapability(self._path_type(directory), _CONDITIONAL))
            hadoop = jvm.org.apache.hadoop.fs
            self._context = hadoop.FileContext.getFileContext(self._files.getUri(), configuration)
            gateway = spark.sparkContext._gateway
            assert gateway is not None
            self._no_options = gateway.new_array(getattr(hadoop, "Options$Rename"), 0)
            self._files.exists(self._path_type(directory))
        except (Py4JError, PySparkException) as error:
            version = jvm.org.apache.hadoop.util.VersionInfo.getVersion()
            raise SourceError(f"{directory} is out of reach: {explained(first_line(error), version)}") from error
        self._lease = Lease(self, self._root)

    def lock(self) -> contextlib.AbstractContextManager[None]:
        return self._lease.held()

    def check_lock(self) -> None:
        self._lease.check()

    def names(self, path: str) -> list[str]:
        at = self._at(path)
        if not self._files.exists(at):
            return []
        return sorted(status.getPath().getName() for status in self._files.listStatus(at))

    def below(self, path: str) -> list[str]:
        """The paths of all files below a directory; none if it doesn't exist."""
        at = self._at(path)
        if not self._files.exists(at):
            return []
        found, each = [], self._files.listFiles(at, True)
        root = self._files.makeQualified(at).toString()
        while each.hasNext():
            found.append(f"{path}{each.next().getPath().toString().removeprefix(root)}")
        return sorted(found)

    def read(self, path: str) -> str:
        return self.read_bytes(path).decode()

    def read_bytes(self, path: str, last: int | None = None) -> bytes:
        """A file's content; `last`: only so many bytes at its end, or all if there are fewer."""
        at = self._at(path)
        start = 0 if last is None else max(0, self._files.getFileStatus(at).getLen() - last)
        stream = self._files.open(at)
        try:
            if start:
                stream.seek(start)
            return bytes(self._input.toByteArray(stream))
        finally:
            stream.close()

    def footer(self, path: str) -> pq.FileMetaData:
        import pyarrow as pa
        from pyarrow.parquet import read_metadata

        try:
            return read_metadata(pa.BufferReader(self.read_bytes(path, _FOOTER)))
        except pa.ArrowInvalid:  # it is longer
            return read_metadata(pa.BufferReader(self.read_bytes(path)))

    def write(self, path: str, content: bytes) -> None:
        stream = self._files.create(self._at(path), True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def write_new(self, path: str, text: str) -> bool:
        target = self._at(path)
        beside = target if self._is_conditional else self._at(f"{path}.{uuid.uuid4().hex}")  # of this run alone
        try:
            if self._is_conditional:
                builder = self._files.createFile(target).recursive().overwrite(False)
                stream = builder.must(_CONDITIONAL, True).build()
            else:
                stream = self._files.create(beside, False)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()
            if not self._is_conditional:
                self._context.rename(beside, target, self._no_options)
        except Py4JJavaError as error:
            if not self._is_conditional:
                self._files.delete(beside, False)
            if self._files.exists(target):
                return False
            raise SourceError(f"{self._root}/{path} cannot be written: {first_line(error)}") from error
        return True

    def sync(self, paths: Sequence[str]) -> None:
        """Does nothing: the store already has the whole content of a closed file."""

    def move(self, source: str, target: str) -> None:
        if not self._files.exists(self._at(source)):
            return
        self._files.mkdirs(self._at(target).getParent())
        try:
            self._rename(source, target)
        except SourceError:
            if self._files.exists(self._at(source)):  # else another run has moved it
                raise

    def status(self, path: str) -> tuple[int, int]:
        if not self._files.exists(self._at(path)):
            raise FileNotFoundError(path)
        found = self._files.getFileStatus(self._at(path))
        return int(found.getLen()), int(found.getModificationTime())

    def replace(self, source: str, target: str) -> None:
        for name in self.names(source):
            if not name.endswith(".parquet"):
                self.remove(f"{source}/{name}")
        aside = f"{source}.old"
        if self._files.exists(self._at(target)):
            self._rename(target, aside)
        self._rename(source, target)
        self.remove(aside)

    def remove(self, path: str) -> None:
        self._files.delete(self._at(path), True)

    def clean(self, path: str, own: str) -> None:
        """Removes `own`, and old files below `path`: recent ones may belong to another run."""
        self.remove(own)
        at = self._at(path)
        for status in self._files.listStatus(at) if self._files.exists(at) else ():
            if status.getModificationTime() < (time.time() - _STALE_S) * 1000:
                self._files.delete(status.getPath(), True)

    def _at(self, path: str) -> Any:
        return self._path_type(f"{self._root}/{path}".rstrip("/"))

    def _rename(self, source: str, target: str) -> None:
        if not self._files.rename(self._at(source), self._at(target)):
            raise SourceError(f"{self._root}/{target} cannot be written: is {self._root} writable?")
