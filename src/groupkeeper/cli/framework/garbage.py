"""When Python looks for garbage in cycles, which costs the more the more objects there are.

All else is freed by reference counts. PyPy has none: its collector frees all, and stays on. There, these do nothing.
"""

import gc
import sys

_COUNTS_REFERENCES = sys.implementation.name == "cpython"


def stop_looking() -> None:
    """Look for none from now on."""
    if _COUNTS_REFERENCES:
        gc.disable()


def look_less_often() -> None:
    """For programs that make rows by the hundred thousand, and no cycles of them."""
    if _COUNTS_REFERENCES:
        gc.set_threshold(100_000)


def keep_all() -> None:
    """Never look through what there is now, not even when the program ends."""
    if _COUNTS_REFERENCES:
        gc.freeze()


def look_again() -> None:
    """The opposite of `stop_looking`."""
    if _COUNTS_REFERENCES:
        gc.enable()
