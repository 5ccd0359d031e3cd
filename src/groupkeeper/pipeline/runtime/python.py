"""The Python of Spark's workers on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from groupkeeper.pipeline.errors import SourceError

_VARIABLE = "PYSPARK_PYTHON"
_SETTING = "spark.pyspark.python"
_ENVIRONMENT = "spark.executorEnv."
_NEEDED = ("groupkeeper", "numpy", "pyarrow", "cramjam", "google_crc32c")
_ASK = f"""import sys; print('%d.%d' % sys.version_info[:2])
from importlib.util import find_spec; print(', '.join(name for name in {_NEEDED} if find_spec(name) is None))"""
_PATIENCE_S = 60


def worker_python(settings: Mapping[str, str]) -> str:
    """The Python program that Spark's settings name, or else the environment; by default the running one."""
    return settings.get(_SETTING) or os.environ.get(_VARIABLE) or sys.executable


def check_python(settings: Mapping[str, str]) -> None:
    """Raises SourceError if that Python has another version, or lacks modules that tasks import."""
    python, own = worker_python(settings), f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    if python == sys.executable:
        return
    given = {key.removeprefix(_ENVIRONMENT): each for key, each in settings.items() if key.startswith(_ENVIRONMENT)}
    found, missing = "", ""
    try:
        ran = subprocess.run(
            [python, "-c", _ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
            env={**os.environ, **given},
        )
        version, missing = [*ran.stdout.splitlines(), "", ""][:2]
        found = f"Python {version}"
        reason = f"it is {found}" if version.replace(".", "").isdecimal() else "it is something else"
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or "it does not answer"
    if found != own or missing:
        name = _SETTING if settings.get(_SETTING) else _VARIABLE
        what = f"lacks {missing}" if found == own else f"is no {own} ({reason})"
        raise SourceError(f"{name}={python} {what}: leave it out, or name a {own} with all of '.[spark]'")
