"""What `pip install .` installs."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from groupkeeper.cli import drop_ins
from groupkeeper.cli.framework.completion import DROP_INS

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src"


def test_the_wheel_holds_every_module_and_the_commands(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(SOURCES, checkout / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", ".*"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, checkout)
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(tmp_path)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(checkout)], check=True, timeout=50)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        (entry_points,) = [packed.read(name).decode() for name in names if name.endswith("entry_points.txt")]
    kept = [path for path in (checkout / "src").rglob("*") if path.is_file() and "egg-info" not in str(path)]
    assert {str(path.relative_to(checkout / "src")) for path in kept} <= names
    assert any(name.endswith("licenses/NOTICE") for name in names)
    for name in ("groupkeeper = groupkeeper.cli.main:main", "kafka-consumer-groups = "):
        assert name in entry_points


def test_each_drop_in_is_a_program() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts.keys() - {"groupkeeper"} == DROP_INS.keys()
    for name in DROP_INS:
        tool = name.replace("-", "_")
        assert scripts[name] == f"groupkeeper.cli.drop_ins:{tool}"
        assert callable(import_module(f"groupkeeper.cli.dropin.{tool}").main)


def test_an_interrupted_import_is_silent(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt(name)

    monkeypatch.setattr("importlib.import_module", interrupted)
    assert drop_ins.kafka_groups() == 130
    assert capfd.readouterr() == ("", "")


def test_the_extra_brings_a_spark_that_has_what_the_source_imports() -> None:
    """Streams of Arrow batches came with Spark 4.1. That the source works on 4.1 is shown by `make lake`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (spark,) = [each for each in map(Requirement, project["optional-dependencies"]["spark"]) if each.name == "pyspark"]
    assert not spark.specifier.contains("4.0.9")
    tried = [ROOT / f"requirements/{name}.txt" for name in ("spark41", "spark42", "dev")]
    found = [re.findall(r"^pyspark==(\S+)", path.read_text(), re.MULTILINE) for path in tried]
    assert [one for (one,) in found if not spark.specifier.contains(one)] == []
    assert spark.specifier.contains(version("pyspark"))
    locked = re.findall(r"^pyspark==(\S+)", (ROOT / "requirements/dev.txt").read_text(), re.MULTILINE)
    assert [one for one in locked if not spark.specifier.contains(one)] == []
    assert len(locked) == 1


def test_the_image_is_made_of_what_is_there() -> None:
    """Docker is not at hand where tests run: what the file copies is there, let through, and locked."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = [source for line in lines if line.startswith("COPY ") and "--from" not in line
              for source in line.split()[1:-1]]  # fmt: skip
    assert {"pyproject.toml", "src", "requirements/serve.txt"} <= set(copied)
    assert [source for source in copied if not (ROOT / source).exists()] == []
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert set(copied) <= let_through
    (entry,) = [json.loads(line.removeprefix("ENTRYPOINT ")) for line in lines if line.startswith("ENTRYPOINT ")]
    (words,) = [json.loads(line.removeprefix("CMD ")) for line in lines if line.startswith("CMD ")]
    command = [str(Path(sys.executable).with_name(entry[0])), *words]
    assert subprocess.run(command, capture_output=True, check=True, timeout=50).stdout.startswith(b"usage: ")


def test_pages_and_texts_install_from_a_checkout_while_there_is_no_release() -> None:
    by_name = re.compile(r"pip install '?groupkeeper\b(?!-)")
    folders = [ROOT / "docs", ROOT / "examples", SOURCES]
    kinds = {".md", ".yml", ".ipynb", ".py"}
    pages = [path for folder in folders for path in folder.rglob("*") if path.suffix in kinds]
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in (ROOT / "README.md", *pages)
        for line in path.read_text().splitlines()
        if by_name.search(line)
    ]
    assert not found
    requirements = (ROOT / "examples/pytest-project/requirements.txt").read_text().split()
    assert requirements[0] == "../.."
