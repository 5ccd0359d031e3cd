"""The Spark session of a job, with the setup of Java, Python, addresses and logging."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

from groupkeeper.pipeline.errors import SourceError, first_line, killed_for, last_reason
from groupkeeper.pipeline.runtime.java import find_java
from groupkeeper.pipeline.runtime.python import check_python, worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG_CONFIGURATION = """\
rootLogger.level = warn
rootLogger.appenderRef.error.ref = error
appender.error.type = Console
appender.error.name = error
appender.error.target = SYSTEM_ERR
appender.error.layout.type = PatternLayout
appender.error.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} %p %c{1}: %m%n%ex
"""
"""Java's standard error is the log: a file that Java opened itself would come back after its removal."""

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
_ARROW = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Java reads rows of Python from Arrow's vectors without checking each access, which saves a tenth of the time: Spark
only asks for rows within the batch, and looks for nulls itself.
"""
_SHORT = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:ReservedCodeCacheSize=240m -XX:-BytecodeVerificationRemote -XX:MetaspaceSize=256m -Xmn256m"
)
"""Options for a Java that ends before its better compiler pays: half of the CPU of a start. With one compiler, the code
cache would have only 48 MB, which the plans of five snapshots fill, so that code is compiled again and again. Spark's
own classes need no verification, and early collections would find little.
"""
_SHORT_LOCAL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Settings for plans of few rows, which are run as they are: a quarter less CPU again."""

_APPENDED = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
"""Settings whose given values are appended to ours: Java takes the last of two values of an option."""
_OUR_COLLECTOR = "-XX:+UseSerialGC"
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")

_READ = re.compile(r"(PY)?SPARK_(?!HOME$)|(HADOOP|YARN)_CONF_DIR$|(JAVA_TOOL|_JAVA|JDK_JAVA)_OPTIONS$")
"""Environment variables that Spark and Java read. If one has a wrong value, their errors do not name it."""
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""A variable of programs that spark-submit starts."""

_CONNECT = "pip install 'pyspark[connect]'"
_CONNECT_PORT = 15002
_PATIENCE_S = 10
"""The timeout of a connection to check that a master or server runs. Spark itself takes minutes to find out."""


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
    """A session with the source `groupkeeper` registered, unless `has_source` is False (registering starts a Spark
    worker); a running session is reused.

    `master` is Spark's URL; None: all cores of this machine. Where spark-submit started this process, or a notebook's
    platform its session, Spark's own settings stay as they are. `remote` is the URL of a Spark Connect server, which is
    used instead. `settings` override ours, but options for Java are combined. The output of Spark and Java is written
    to the file `log`; None: a file in the directory for temporary files, which goes at the end of the program, unless
    an exception ends it. `is_short`: there is little to do, so a quick start matters more than speed. This package is
    sent to other machines; numpy, pyarrow and its other dependencies must be installed there. Raises SourceError when
    the extra or Java is missing, when Spark does not start, or when the server cannot change a setting.
    """
    try:
        if remote is not None:
            session = _connected(name, remote, settings or {})
        else:
            if _is_running():
                session = _running(name, master, settings or {})
            else:
                session = _started(name, master or "local[*]", settings or {}, log or log_path(), is_short)
            if log is None:
                atexit.register(_remove_unless_failed, log_path())
    except ModuleNotFoundError as error:
        raise SourceError(
            f"{error.name or 'pyspark'} is missing: pip install '.[spark]' in a checkout brings it"
        ) from None
    if has_source:
        from groupkeeper.pipeline.kafka.source import GroupkeeperSource

        session.dataSource.register(GroupkeeperSource)
    return session


def log_path() -> Path:
    """The default log file of Spark and Java in this process."""
    with _interrupts_later():  # Python tries the directory with a file, which an interrupt might leave
        return Path(tempfile.gettempdir()) / f"groupkeeper-spark-{os.getpid()}.log"


def _remove_unless_failed(log: Path) -> None:
    """Removes the log at the end of the program, unless an exception ended it, which the log may explain."""
    if not hasattr(sys, "last_value"):
        log.unlink(missing_ok=True)
    elif log.exists():
        print(f"Spark's log: {log}", file=sys.stderr)


def _connected(name: str, remote: str, settings: Mapping[str, str]) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    check_can_start(settings, remote=remote)
    builder = SparkSession.builder.appName(name).config(map=_of_session())
    try:
        session = builder.remote(remote).getOrCreate()
        _set_at_server(session, remote, settings)
        _send_package(session)
    except ImportError as error:
        raise SourceError(f"--remote needs Spark Connect's client ({first_line(error)}): {_CONNECT}") from None
    except PySparkException as error:
        raise SourceError(f"{remote}: {first_line(error)}") from error
    return session


def _is_running() -> bool:
    """Whether spark-submit or a notebook's platform has started Spark, with all settings of a cluster."""
    from pyspark.sql import SparkSession

    return _SUBMITTED in os.environ or SparkSession.getActiveSession() is not None


def _running(name: str, master: str | None, settings: Mapping[str, str]) -> SparkSession:
    """The running session; only the session's own settings are set."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).config(map={**_of_session(), **settings})
    session = (builder if master is None else builder.master(master)).getOrCreate()
    if not _is_local(str(session.sparkContext.master)):
        _send_package(session)
    return session


def quieten() -> None:
    """Hides Spark's messages of level INFO, more than a hundred in a command's output, if spark-submit started this
    process without a configuration of log4j.
    """
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    if _SUBMITTED not in os.environ or SparkContext._active_spark_context is not None:
        return
    SparkContext._ensure_initialized()
    java: Any = SparkContext._jvm
    log4j = java.org.apache.logging.log4j
    with contextlib.suppress(Py4JError):  # in a Spark where these have other names it is as loud as always
        # Or Spark would take its own when it first logs.
        java.org.apache.spark.SparkConf(False).initializeLogIfNecessary(False)
        place = log4j.LogManager.getContext(False).getConfiguration().getConfigurationSource().getLocation()
        if str(place).endswith("/org/apache/spark/log4j2-defaults.properties"):
            log4j.core.config.Configurator.reconfigure(java.java.io.File(str(_log_configuration())).toURI())


def _of_session() -> dict[str, Any]:
    """The settings of the session itself; the other settings belong to the cluster."""
    return {key: value for key, value in _ALWAYS.items() if key.startswith("spark.sql.")}


def _started(name: str, master: str, settings: Mapping[str, str], log: Path, is_short: bool) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    check_can_start(settings, master=master)
    chosen = merged_settings(_settings(master, is_short), settings)
    builder = SparkSession.builder.appName(name).config(map={**chosen})
    others = sorted(name for name in os.environ if _READ.match(name))
    _set_environment(master, settings)
    before = log.stat().st_size if log.exists() else 0
    try:
        with interrupts_first(), _noise_to(log):
            _start_java({**chosen, "spark.master": master, "spark.app.name": name})
            session = builder.master(master).getOrCreate()
    except KeyboardInterrupt:
        _end_java()
        raise
    except (PySparkException, Py4JError, OSError) as error:
        reason = _reason(error, log.read_bytes()[before:].decode(errors="replace"))
        if others:
            reason = f"{reason.rstrip('.')}; Spark also reads {', '.join(others)} of the environment"
        raise SourceError(f"Spark does not start with the master {master}: {reason} (its log: {log})") from error
    if not _is_local(master):
        _send_package(session)
    return session


@contextlib.contextmanager
def interrupts_first() -> Iterator[None]:
    """Raises an interrupt in place of an error that it has caused: Py4J cleans up after it, on a connection that may
    still be in use.
    """
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, KeyboardInterrupt):
                raise cause from None
            cause = cause.__context__
        raise


def _start_java(settings: Mapping[str, str]) -> None:
    """Starts Java, unless it is running. An interrupt is delayed until Java has reported its port: from then on Java
    ends with this process; before, PySpark would lose track of it, and it would run for ever.

    Java has a session of its own: a signal to our process group (of a terminal, `timeout`, systemd) is for us alone.
    """
    from pyspark import SparkConf, SparkContext, java_gateway

    launch: Any = java_gateway.launch_gateway
    conf = SparkConf().setAll(list(settings.items()))
    with _interrupts_later():
        gateway: Any = SparkContext._gateway or launch(conf, {"start_new_session": True})
        SparkContext._ensure_initialized(gateway=gateway, conf=conf)
        java: Any = SparkContext._jvm
        # Java then ends after this process even if that is killed.
        java.org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(java.java.io.File(str(_scratch())))


def _end_java() -> None:
    """Ends Java: after an interrupt during its start, it would go on making files."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    if gateway is not None:
        gateway._gateway_client.is_connected = False  # or objects that are released from here on would call Java
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            gateway.proc.stdin.close()  # ends it
            gateway.proc.wait(_PATIENCE_S)


@contextlib.contextmanager
def _interrupts_later() -> Iterator[None]:
    """Delays an interrupt to the end of the context."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def merged_settings(ours: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The given settings win; given options for Java follow ours."""
    found = {**ours, **given}
    for key in _APPENDED:
        if key in ours and key in given:
            # Java does not start with two collectors.
            kept = ours[key].replace(_OUR_COLLECTOR, "") if _COLLECTOR.search(given[key]) else ours[key]
            found[key] = " ".join([*kept.split(), given[key]])
    return found


def fixed_settings(names: Iterable[str], is_modifiable: Callable[[str], bool]) -> list[str]:
    """The settings that a server cannot change. It accepts unknown SQL settings (for example catalogs)."""
    return [name for name in names if not name.startswith("spark.sql.") and not is_modifiable(name)]


def _set_at_server(session: SparkSession, remote: str, settings: Mapping[str, str]) -> None:
    """Raises SourceError for settings that the server refuses: the builder would only warn."""
    if fixed := fixed_settings(settings, session.conf.isModifiable):
        session.stop()
        raise SourceError(
            f"{remote}: {', '.join(fixed)}: only where the server is started can this be set: leave it out"
        )
    for key, value in settings.items():
        session.conf.set(key, value)


def check_can_start(settings: Mapping[str, str], *, master: str | None = None, remote: str | None = None) -> None:
    """Raises SourceError for problems that can be found before Spark starts: there is no Java; workers on this machine
    lack this version of Python, or modules; no master of a standalone cluster, or no server, listens at the URL's
    addresses.
    """
    if _SUBMITTED in os.environ:
        return
    if remote is not None:
        _look_for_server(remote)
        return
    find_java()
    if master is None or _is_local(master):
        check_python(settings)
    elif master.startswith("spark://"):
        _look_for("Spark master", "--master", master.removeprefix("spark://").split(","))


def _look_for_server(remote: str) -> None:
    """As `check_can_start` for a Spark Connect server, unless its client may reach it through a proxy."""
    place = remote.removeprefix("sc://").partition("/")[0]
    if place != remote and not getproxies().keys() - {"no"}:
        has_port = re.search(r":\d+$", place) is not None
        _look_for("Spark Connect server", "--remote", [place if has_port else f"{place}:{_CONNECT_PORT}"])


def _look_for(what: str, option: str, places: Sequence[str]) -> None:
    refused: dict[str, str] = {}
    for place in places:
        host, _, port = place.rpartition(":")
        if not host or not port.isdecimal():
            return  # Spark reports the mistake in it
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE_S).close()
        except (OSError, OverflowError) as error:
            refused[place] = getattr(error, "strerror", None) or str(error)
        else:
            return
    reasons = "; ".join(f"{place}: {reason}" for place, reason in refused.items())
    raise SourceError(f"no {what} answers ({reasons}): start it, or give its address with {option}")


def _reason(error: Exception, log: str) -> str:
    """Why Spark does not start: Java's error, or its last output before it ended."""
    from py4j.protocol import Py4JError, Py4JNetworkError

    killed = killed_for(log)
    if killed is not None:
        return killed
    try:
        reason = first_line(error)  # calls Java
    except Py4JError as gone:
        error, reason = gone, "Java has ended"
    has_ended = isinstance(error, Py4JNetworkError | ConnectionError) or "JAVA_GATEWAY_EXITED" in reason
    return (last_reason(log) if has_ended else None) or reason


def _scratch() -> Path:
    """A temporary directory that is removed with this process."""
    scratch = Path(tempfile.gettempdir()) / f"groupkeeper-spark-{os.getpid()}"
    scratch.mkdir(mode=0o700, exist_ok=True)
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    return scratch


def _settings(master: str, is_short: bool) -> dict[str, str]:
    found = dict(_ALWAYS)
    java_options = f"{_ARROW} {_SHORT}" if is_short else _ARROW
    if _is_local(master):
        cores = str(os.cpu_count() or 1)
        found |= {key: value.format(cores=cores) for key, value in _LOCAL.items()}
        found |= _SHORT_LOCAL if is_short else {}
    else:
        found["spark.executor.extraJavaOptions"] = java_options
    scratch, configuration = _scratch(), _log_configuration()
    return found | {
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": f'-Dlog4j2.configurationFile="{configuration}" '
        # Standard output is for results.
        f'-Dderby.system.home="{scratch}" -XX:+DisplayVMOutputToStderr {java_options}',
    }


def _log_configuration() -> Path:
    path = _scratch() / "log4j2.properties"
    path.write_text(_LOG_CONFIGURATION)
    return path


def _set_environment(master: str, settings: Mapping[str, str]) -> None:
    """Sets what Spark reads only from the environment; variables that the user has set stay."""
    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ["PYSPARK_PYTHON"] = worker_python(settings)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if _is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.pop("SPARK_HOME", None)  # of another Spark than the one imported


def _is_local(master: str) -> bool:
    return master.startswith("local")


@contextlib.contextmanager
def _noise_to(log: Path) -> Iterator[None]:
    """Redirects Java's output: Java inherits the process's standard error, and writes to it before its logging is set
    up.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _send_package(session: SparkSession) -> None:
    session.addArtifacts(str(package_archive(_scratch())), pyfile=True)


def package_archive(directory: Path) -> Path:
    """Write `directory`/groupkeeper.zip, which Python imports from."""
    root = Path(__file__).parents[1]  # this package
    target = directory / "groupkeeper.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(root.rglob("*.py")):
            archive.write(path, Path("groupkeeper") / path.relative_to(root))
    return target
