"""The Spark session of a command: always stopped at its end."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from groupkeeper.pipeline.errors import SourceError, cause_of, first_line
from groupkeeper.pipeline.runtime.executors import context_of
from groupkeeper.pipeline.session import interrupts_first, log_path, quieten, start_session

_PY4J = "py4j/java_gateway.py"
_FORGETTING = ("<lambda>", "_garbage_collect_object")
"""The functions that Py4J's weak references call."""
_AGAIN_S = 0.02
_came: list[int] = []
"""The signals that interrupted this process, other than Ctrl-C's."""


@contextlib.contextmanager
def session(
    name: str,
    *,
    master: str | None,
    remote: str | None,
    settings: Mapping[str, str] | None = None,
    is_short: bool = False,
) -> Iterator[SparkSession]:
    """The Spark session of a command, stopped at the end. Raises SourceError when Spark does not start, and in place of
    Spark's errors. The log of Spark and Java is kept after a failure that it may explain, or an interrupt while Spark
    was at work, to which a note with the log's path is added. Jobs register the source themselves. From here on SIGTERM
    and SIGHUP interrupt, as Ctrl-C does.
    """
    log = log_path()
    _came.clear()
    _interrupt_at(signal.SIGTERM, signal.SIGHUP)
    try:
        with interrupts_first(), _interrupts_kept():
            quieten()
            spark = start_session(
                f"groupkeeper {name}",
                master=master,
                remote=remote,
                settings=settings,
                is_short=is_short,
                log=log,
                has_source=False,
            )
    except KeyboardInterrupt:
        started = KeyboardInterrupt(*_came)
        started.add_note(_place_of(log))
        raise started from None
    _silence()
    is_wanted = False
    try:
        with interrupts_first():
            yield spark
    except KeyboardInterrupt as interrupted:
        is_wanted = isinstance(interrupted, InterruptedAtWork) or _is_at_work(spark)
        if is_wanted:
            interrupted.add_note(_place_of(log))
        raise
    except (PySparkException, Py4JError) as error:
        is_wanted = (cause := cause_of(error)) is None
        raise SourceError(cause or f"{first_line(error)}{_place_of(log)}") from error
    finally:
        # An interrupted call leaves its connection as it is, and Java may have ended: PySpark would warn, too.
        with contextlib.suppress(PySparkException, Py4JError, ConnectionError), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            spark.stop()
        if not is_wanted:
            log.unlink(missing_ok=True)


class InterruptedAtWork(KeyboardInterrupt):
    """An interrupt of a job that had already been told to end."""


def _place_of(log: Path) -> str:
    """The path of Spark's log, for messages; "" when Spark was running before, as its log is elsewhere."""
    return f" (Spark's log: {log})" if log.exists() else ""


def _is_at_work(spark: SparkSession) -> bool:
    """Whether a job of Spark is running, or Spark does not tell any more."""
    if (context := context_of(spark)) is None:
        return False
    # In another thread: the call that was interrupted may still have this one's connection.
    try:
        with ThreadPoolExecutor(1) as thread:
            return bool(thread.submit(lambda: context.statusTracker().getActiveJobsIds()).result())
    except (PySparkException, Py4JError, ConnectionError):
        return True


def _interrupt_at(*numbers: signal.Signals) -> None:
    """Makes these signals interrupt the process instead of ending it."""

    def note(number: int, _: object) -> None:
        _came.append(number)
        signal.raise_signal(signal.SIGINT)

    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, note)


@contextlib.contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Keeps Python's handler of Ctrl-C. Spark's own handler calls Java during another call, which fails with a
    traceback. The session is stopped anyway.
    """
    handler = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt if handler is signal.default_int_handler else handler)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Python's own handler of Ctrl-C, except while Py4J releases an object: an exception there would be printed and
    lost. In that case the signal is sent again.
    """
    while frame is not None:
        if frame.f_code.co_filename.endswith(_PY4J) and frame.f_code.co_name in _FORGETTING:
            # To this thread, so that the signal does not first wait for Java.
            threading.Timer(_AGAIN_S, signal.pthread_kill, (threading.get_ident(), number)).start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt(*_came)


def _silence() -> None:
    """Silences what Py4J and PySpark log about failed calls; we show the errors in our words."""
    logging.getLogger().addHandler(logging.NullHandler())
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
