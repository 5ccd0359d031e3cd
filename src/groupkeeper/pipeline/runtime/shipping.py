"""This package as one file, for machines that don't have it."""

from __future__ import annotations

import zipfile
from pathlib import Path


def package_archive(directory: Path) -> Path:
    """Write `directory`/groupkeeper.zip, which Python imports from."""
    root = Path(__file__).parents[2]  # this package
    target = directory / "groupkeeper.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(root.rglob("*.py")):
            archive.write(path, Path("groupkeeper") / path.relative_to(root))
    return target
