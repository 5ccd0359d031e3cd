"""What is said of a Python for Spark's workers that is none."""

import subprocess
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
    (tmp_path / "same").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "same").chmod(0o700)
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "same"))
    assert worker_python({}) == str(tmp_path / "same")
    check_python({})


def test_it_has_the_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark would find out after half a minute."""
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # without installed packages
    bare.chmod(0o700)
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare))
    with pytest.raises(SourceError) as caught:
        check_python({})
    assert str(caught.value) == (
        f"PYSPARK_PYTHON={bare} lacks groupkeeper, numpy, pyarrow, cramjam, google_crc32c: leave it out, or "
        f"name a {OWN} with all of '.[spark]'"
    )
    for name in ("groupkeeper", "numpy", "pyarrow", "cramjam", "google_crc32c"):
        (tmp_path / f"{name}.py").touch()
    check_python({"spark.executorEnv.PYTHONPATH": str(tmp_path)})


@pytest.mark.parametrize("module", ["jobs.following.source", "jobs.following.job", "jobs.task", "kafka.source"])
def test_processes_of_spark_start_without_pandas(module: str) -> None:
    code = f"import sys, groupkeeper.pipeline.{module}; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
