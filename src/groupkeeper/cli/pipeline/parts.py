"""Modules of the pipeline, which are imported when they are needed: PySpark takes its time, and may be missing."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from groupkeeper.pipeline.errors import SourceError


def import_part(name: str) -> Any:
    """A module of the pipeline. Raises SourceError where the extra is missing."""
    # Arrow reads this when it is loaded. With huge pages, a job of days keeps 2 MB for each 4 KB: 80 MB in 40 minutes.
    os.environ.setdefault("MIMALLOC_ALLOW_THP", "0")
    try:
        return import_module(f"groupkeeper.pipeline.{name}")
    except ModuleNotFoundError as error:
        raise SourceError(f"{error.name} is missing: pip install '.[spark]' in a checkout brings it") from None
