"""Writing the output of commands. A failure to write is reported in one line; characters that cannot be encoded are
replaced.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator


class Unwritable(Exception):
    """Standard output takes no more. The text is the reason."""


class _Closed(io.TextIOBase):
    """Replaces a standard output that was closed at the start: a flush after a write fails."""

    def __init__(self) -> None:
        self._missed = False

    def write(self, text: str) -> int:
        self._missed = self._missed or bool(text)
        return len(text)

    def flush(self) -> None:
        if self._missed:
            self._missed = False
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def say(text: str) -> None:
    """Write to standard output. Raises Unwritable, BrokenPipeError."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unwritable(error.strerror or str(error)) from error


def complain(text: str) -> None:
    """Write to standard error, after what standard output has so far. Raises Unwritable, BrokenPipeError."""
    flush()
    _complain_at_last(text)


def complain_and_say(texts: Iterable[tuple[str, str]]) -> None:
    """Write pairs: the first to standard error, and after it the second to standard output.

    The order cannot be seen when the two go to different places: then each gets all at once. What `texts` raises is
    raised when the pairs before are written. Raises as `say` does.
    """
    if _are_one_place():
        for complaint, text in texts:
            if complaint:
                complain(complaint)
            say(text)
        return
    pairs: list[tuple[str, str]] = []
    try:
        pairs.extend(texts)
    finally:
        complain("".join([complaint for complaint, _ in pairs]))
        for start in range(0, len(pairs), _AT_ONCE):
            say("".join([text for _, text in pairs[start : start + _AT_ONCE]]))


_AT_ONCE = 500
"""The number of texts to write together: this saves calls, and copies only few texts."""


def _are_one_place() -> bool:
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):
        return True


def flush() -> None:
    """Flushes standard output. Raises Unwritable, BrokenPipeError."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unwritable(error.strerror or str(error)) from error


def written(run: Callable[[], int], *, unencodable: str) -> int:
    """Runs a command, and makes sure that its output arrives; returns the exit status.

    `unencodable`: Python's error handler for characters that the output's encoding lacks.
    """
    if sys.stdout is None:  # mypy doesn't know that it is None when the descriptor is closed
        sys.stdout = _Closed()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=unencodable)
    try:
        try:
            with _interrupts_that_arrive():
                status = run()
        except SystemExit:
            flush()  # argparse ends so, after a help that perhaps was not read
            raise
        flush()
    except BrokenPipeError:
        # The reader has read enough.
        _drop_output()
        return 0
    except Unwritable as problem:
        _drop_output()
        _complain_at_last(f"cannot write the output: {problem}\n")
        return 1
    except KeyboardInterrupt as interrupt:
        dismiss(interrupt)
        return status_of(interrupt)
    return status


def status_of(interrupt: KeyboardInterrupt) -> int:
    """The exit status after a signal, by its number, which the interrupt has unless it is Ctrl-C's."""
    number: int = next(iter(interrupt.args), signal.SIGINT)
    return 128 + number


@contextlib.contextmanager
def _interrupts_that_arrive() -> Iterator[None]:
    """Sends an interrupt again that came in a finalizer or a weak reference: Python only prints it, and goes on."""
    hook, main_thread = sys.unraisablehook, threading.get_ident()

    def interrupt_again(failure: sys.UnraisableHookArgs) -> None:
        if issubclass(failure.exc_type, KeyboardInterrupt):
            threading.Timer(_AGAIN_S, signal.pthread_kill, (main_thread, signal.SIGINT)).start()
        else:
            hook(failure)

    sys.unraisablehook = interrupt_again
    try:
        yield
    finally:
        sys.unraisablehook = hook


_AGAIN_S = 0.02


def dismiss(interrupt: KeyboardInterrupt) -> None:
    """Frees objects that Ctrl-C left half made, such as a coroutine that was never awaited, without the messages that
    Python would print for them.
    """
    hook = sys.unraisablehook
    sys.unraisablehook = lambda _: None
    try:
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            interrupt.__traceback__ = interrupt.__context__ = interrupt.__cause__ = None
            gc.collect()
    finally:
        sys.unraisablehook = hook


def _complain_at_last(text: str) -> None:
    # If standard error cannot be written either, only the exit status shows the failure.
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(text)


def _drop_output() -> None:
    """Replaces standard output, so that Python flushes nothing more at its exit."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
