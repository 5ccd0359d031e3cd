"""What is said of a Python for Spark's workers that is none."""

import sys
from pathlib import Path

import pytest

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.runtime.python import check_python, worker_python

OWN = f"Python {sys.version_info[0]}.{sys.version_info[1]}"


@pytest.mark.parametrize("is_setting", [True, False])
@pytest.mark.parametrize(
    ("script", "why"),
    [
        (None, "No such file or directory"),
        ("#!/bin/sh\necho 2.7\n", "it is Python 2.7"),
        ("#!/bin/sh\nexit 1\n", "it is something else"),
        ("", "Exec format error"),
    ],
)
def test_it_is_named_by_what_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, why: str, is_setting: bool
) -> None:
    python = tmp_path / "python"
    if script is not None:
        python.write_text(script)
        python.chmod(0o700)
    monkeypatch.setenv("PYSPARK_PYTHON", "/of/the/environment" if is_setting else str(python))
    name, settings = (
        ("spark.pyspark.python", {"spark.pyspark.python": str(python)}) if is_setting else ("PYSPARK_PYTHON", {})
    )
    with pytest.raises(SourceError) as caught:
        check_python(settings)
    assert str(caught.value) == (
        f"{name}={python} is no {OWN} ({why}): leave it out, or name a {OWN} with all of '.[spark]'"
    )


def test_by_default_it_is_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert worker_python({}) == sys.executable
    check_python({})
    (tmp_path / "same").symlink_to(sys.executable)
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "same"))
    assert worker_python({}) == str(tmp_path / "same")
    check_python({})
