"""The Python of Spark's workers on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from groupkeeper.pipeline.errors import SourceError

_VARIABLE = "PYSPARK_PYTHON"
_SETTING = "spark.pyspark.python"
_ASK = "import sys; print('%d.%d' % sys.version_info[:2])"
_PATIENCE_S = 60


def worker_python(settings: Mapping[str, str]) -> str:
    """The program that the settings of Spark name, or else the environment; by default the one that runs this."""
    return settings.get(_SETTING) or os.environ.get(_VARIABLE) or sys.executable


def check_python(settings: Mapping[str, str]) -> None:
    """Raises SourceError where that is no Python of this version."""
    python, own = worker_python(settings), f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    if python == sys.executable:
        return
    try:
        ran = subprocess.run(
            [python, "-c", _ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        found = f"Python {ran.stdout.strip()}"
        reason = f"it is {found}" if ran.stdout.strip().replace(".", "").isdecimal() else "it is something else"
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        found, reason = "", getattr(error, "strerror", None) or "it does not answer"
    if found != own:
        name = _SETTING if settings.get(_SETTING) else _VARIABLE
        raise SourceError(
            f"{name}={python} is no {own} ({reason}): leave it out, or name a {own} with all of '.[spark]'"
        )
