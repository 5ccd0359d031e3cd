"""What goes wrong in a pipeline, in one line that names the cluster, partition and offset it is about."""

from __future__ import annotations

__all__ = ["SourceError", "cause_of"]


class SourceError(Exception):
    """A cluster cannot be read as asked: the text says which, what, and the way out."""


def cause_of(error: BaseException) -> str | None:
    """The text of the SourceError that made a Spark job fail; None when something else did.

    What is raised in a Python worker comes back as the text of a JVM exception, with its traceback.
    """
    if isinstance(error, SourceError):
        return str(error)
    mark = f"{SourceError.__module__}.{SourceError.__name__}: "
    for line in str(error).splitlines():
        _, found, text = line.partition(mark)
        if found:
            return text.strip()
    return None
