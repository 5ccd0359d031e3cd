"""What `pip install .` installs."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

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
