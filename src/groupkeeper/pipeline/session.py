"""The Spark session of a job: Java, Python, addresses and noise are seen to here."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.java import find_java
from groupkeeper.pipeline.shipping import package_archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["start_session"]

_LOG_CONFIGURATION = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.append = true
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""

_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "{cores}",
    "spark.ui.enabled": "false",
}
_SHORT = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:-BytecodeVerificationRemote -XX:MetaspaceSize=256m -Xmn256m"
)
"""For Java that ends before its better compiler pays: half of the CPU of a start. Spark's own classes need no
verification, and nothing is collected before there is something to collect.
"""
_SHORT_LOCAL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Plans of few rows are run as they are: a quarter less again."""


_CONNECT = "pip install 'pyspark[connect]'"


def start_session(
    name: str = "groupkeeper",
    *,
    master: str | None = None,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
    is_short: bool = False,
    has_source: bool = True,
) -> SparkSession:
    """A session with the source `groupkeeper` registered, unless `has_source` says no (a worker of Spark's is started
    for that); the one that runs already is taken when there is one.

    `master` is Spark's URL, None for all cores of this machine; `remote` that of a Spark Connect server, which takes
    its place. `settings` win over ours. What Spark and Java say goes to the file `log`, None: one in the directory
    for temporary files. `is_short`: there is little to do, so that a quick start is worth more than speed. To other
    machines this package is sent; numpy, pyarrow and its other dependencies must be there. Raises SourceError when the
    extra or a Java is missing, or Spark does not start.
    """
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SourceError(
            f"{error.name or 'pyspark'} is missing: pip install '.[spark]' in a checkout brings it"
        ) from None
    from groupkeeper.pipeline.source import GroupkeeperSource

    builder = SparkSession.builder.appName(name)
    log = log or Path(tempfile.gettempdir()) / f"groupkeeper-spark-{os.getpid()}.log"
    if remote is not None:
        for key, value in {**_ALWAYS, **(settings or {})}.items():
            builder = builder.config(key, value)
        try:
            session = builder.remote(remote).getOrCreate()
            session.addArtifacts(str(package_archive(_scratch())), pyfile=True)
        except ImportError as error:
            raise SourceError(f"--remote needs Spark Connect's client ({_first_line(error)}): {_CONNECT}") from None
        except PySparkException as error:
            raise SourceError(f"{remote}: {_first_line(error)}") from error
    else:
        master = master or "local[*]"
        for key, value in {**_settings(master, log, is_short), **(settings or {})}.items():
            builder = builder.config(key, value)
        _set_environment(master)
        try:
            with _noise_to(log):
                session = builder.master(master).getOrCreate()
        except (PySparkException, Py4JError) as error:
            raise SourceError(f"Spark does not start ({_first_line(error)}): its log is {log}") from error
        if not _is_local(master):
            session.addArtifacts(str(package_archive(_scratch())), pyfile=True)
    if has_source:
        session.dataSource.register(GroupkeeperSource)
    return session


def _scratch() -> Path:
    """A directory that goes with this process."""
    scratch = Path(tempfile.gettempdir()) / f"groupkeeper-spark-{os.getpid()}"
    scratch.mkdir(mode=0o700, exist_ok=True)
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    return scratch


def _settings(master: str, log: Path, is_short: bool) -> dict[str, str]:
    found = dict(_ALWAYS)
    java_options = f" {_SHORT}" if is_short else ""
    if _is_local(master):
        cores = str(os.cpu_count() or 1)
        found |= {key: value.format(cores=cores) for key, value in _LOCAL.items()}
        found |= _SHORT_LOCAL if is_short else {}
    elif is_short:
        found["spark.executor.extraJavaOptions"] = _SHORT
    scratch = _scratch()
    configuration = scratch / "log4j2.properties"
    configuration.write_text(_LOG_CONFIGURATION.format(log=log))
    return found | {
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={configuration} -Dderby.system.home={scratch}"
        + java_options,
    }


def _set_environment(master: str) -> None:
    """What Spark takes from the environment only; what the user has set stays."""
    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if _is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.pop("SPARK_HOME", None)  # of another Spark than the one imported


def _is_local(master: str) -> bool:
    return master.startswith("local")


@contextmanager
def _noise_to(log: Path) -> Iterator[None]:
    """Java writes to the process's standard error before its logging is set up, and inherits it for ever."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
