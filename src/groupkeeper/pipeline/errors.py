"""Errors of a pipeline, in one line that names the cluster, partition and offset."""

from __future__ import annotations

import re

from groupkeeper.base_error import GroupkeeperError

_TRACE = "Traceback (most recent call last):"
_RAISED = re.compile(r"[A-Za-z_.]+(Error|Exception)\b")
_CAUSED = re.compile(r"^Caused by: (?:[\w$]+\.)+[\w$]+: (\S.*)$", re.MULTILINE)
_JAVA = re.compile(r"(?:[\w$]+\.)+[\w$]*(?:Error|Exception): (?=\S)")
_KILLED = re.compile(r"Application has been killed\. Reason: (\S.*)")
_UNCAUGHT = re.compile(r'^Exception in thread "[^"]*" (\S.*)$', re.MULTILINE)
_NO_VM = re.compile(r"^Error occurred during initialization of VM\n(\S.*)$", re.MULTILINE)
_NOT_MADE = re.compile(r"^(\S.*)\nError: Could not create the Java Virtual Machine\.$", re.MULTILINE)
_LOGGED = re.compile(r"^[-\d]+ [:\d]+ (?:ERROR|FATAL) \S+: (\S.*)$", re.MULTILINE)

_NO_MODULE = re.compile(r"Python worker.*^ModuleNotFoundError: No module named '([^']+)'", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"""Cannot run program "([^"]*)".*?error[=:] ?\d+,? ?\(?([^\n)]*)""")
_OTHER_PYTHON = re.compile(r"Python in worker has different version: (\S+) than that in driver: ([\d.]+)")


class SourceError(GroupkeeperError):
    """A cluster cannot be read with these options: the text names the cluster, the reason, and the solution."""

    cluster_id: str | None = None
    """The id of the cluster that replied; None: none replied, or its id is unknown."""


def cause_of(error: BaseException) -> str | None:
    """The text of the SourceError that made a Spark job fail; None when something else did.

    An error raised in a Python worker comes back as the text of a JVM exception, with its traceback.
    """
    if isinstance(error, SourceError):
        return str(error)
    mark = f"{SourceError.__module__}.{SourceError.__name__}: "
    for line in str(error).splitlines():
        _, found, text = line.partition(mark)
        if found:
            return text.strip()
    return None


def first_line(error: Exception) -> str:
    """The message of an error, without Java's additions; for a worker's traceback, its last line. Its cause in Java
    (for example a full disk) follows.
    """
    trace = getattr(error, "_stackTrace", None) or str(error)
    if not_run := _NOT_RUN.search(trace):
        program, reason = not_run.groups()
        return f"Spark's workers cannot run {program} ({reason}): set PYSPARK_PYTHON to a Python that the workers have"
    if found := _OTHER_PYTHON.search(trace):
        worker, driver = found.groups()
        return f"Spark's workers run Python {worker} and this is {driver}: set PYSPARK_PYTHON to a Python {driver}"
    if missing := _NO_MODULE.search(trace):
        way_out = "install it there, or let PYSPARK_PYTHON name another"
        return f"the Python of Spark's workers lacks the module {missing[1]}: {way_out}"
    return _with_cause(_first_line(error), trace)


def _with_cause(message: str, trace: str) -> str:
    causes = _CAUSED.findall(trace)
    return message if not causes or causes[-1] in message else f"{message}: {causes[-1]}"


def last_reason(log: str) -> str | None:
    """Why a Java process ended by itself, from its output; None when the output does not say."""
    uncaught = [found.start() for found in _UNCAUGHT.finditer(log)]
    if uncaught:
        own = log[uncaught[-1] :]
        return _with_cause(_JAVA.sub("", _UNCAUGHT.findall(own)[0], count=1), own)
    for pattern in (_NO_VM, _NOT_MADE, _LOGGED):
        if found := pattern.findall(log):
            return str(found[-1])
    return None


def killed_for(log: str) -> str | None:
    """Why Spark's cluster ended a session, from Spark's log. Spark's own error only says that it was stopped."""
    found = _KILLED.findall(log)
    return found[-1] if found else None


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if lines[0].startswith("An error occurred while calling ") and len(lines) > 1:  # Py4J; Java's text follows
        return _JAVA.sub("", lines[1].removeprefix(": "), count=1)
    told, _, trace = str(error).strip().partition(_TRACE)
    ends = [line for line in trace.splitlines() if _RAISED.match(line)]
    return f"{told.rstrip()} {ends[0]}".lstrip() if ends and "\n" not in told.rstrip() else lines[0]
