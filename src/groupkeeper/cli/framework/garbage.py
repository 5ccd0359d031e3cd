"""Controls CPython's cyclic garbage collector, whose cost grows with the number of objects. The functions do nothing on
PyPy, where the collector frees everything.
"""

import gc
import sys

_COUNTS_REFERENCES = sys.implementation.name == "cpython"


def stop_looking() -> None:
    """Stops the search."""
    if _COUNTS_REFERENCES:
        gc.disable()


def look_less_often() -> None:
    """Searches less often, for programs that make many rows without cycles."""
    if _COUNTS_REFERENCES:
        gc.set_threshold(100_000)


def keep_all() -> None:
    """Excludes all existing objects from searches, also at the end of the program."""
    if _COUNTS_REFERENCES:
        gc.freeze()


def look_again() -> None:
    """Starts the search again."""
    if _COUNTS_REFERENCES:
        gc.enable()
