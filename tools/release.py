"""Build what is published: a wheel and a source distribution whose pages on an index have links that lead somewhere.

    python tools/release.py https://example.org/groupkeeper [--directory dist]

The address is where the sources are kept. What is tracked by git is built from a copy, in which the README's links lead
there (to the release's tag), and the metadata has the project's addresses. Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)#\s]+)(?P<part>#[^)\s]*)?\)")
BUILD = "import sys; from setuptools import build_meta; build_meta.build_{kind}(sys.argv[1])"


def with_whole_links(page: str, home: str, version: str) -> str:
    """A page whose links to files of the sources have the whole address."""

    def whole(link: re.Match[str]) -> str:
        target, part = link["target"], link["part"] or ""
        if "://" in target:
            return link[0]
        kind = "raw" if link["image"] else "blob"
        return f"{link['image']}[{link['text']}]({home}/{kind}/v{version}/{target}{part})"

    return LINK.sub(whole, page)


def with_addresses(project: str, home: str, version: str) -> str:
    """pyproject.toml with the addresses of the project."""
    urls = {
        "Source": home,
        "Documentation": f"{home}/blob/v{version}/docs/cookbook.md",
        "Changelog": f"{home}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }
    table = "".join(f'{name} = "{address}"\n' for name, address in urls.items())
    return project.replace("[project.scripts]\n", f"[project.urls]\n{table}\n[project.scripts]\n")


def build(home: str, directory: Path) -> list[Path]:
    """Build the source distribution, and the wheel from it; their paths."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version: str = project["version"]
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        sources = Path(temporary) / "sources"
        names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():  # one that was removed is still tracked until that is committed
                (sources / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, sources / name)
        readme, metadata = sources / "README.md", sources / "pyproject.toml"
        readme.write_text(with_whole_links(readme.read_text(), home, version))
        metadata.write_text(with_addresses(metadata.read_text(), home, version))
        sdist = _built("sdist", sources, directory, f"groupkeeper-{version}.tar.gz")
        unpacked = Path(temporary) / "unpacked"
        shutil.unpack_archive(sdist, unpacked, filter="data")
        (inner,) = unpacked.iterdir()
        return [sdist, _built("wheel", inner, directory, f"groupkeeper-{version}-py3-none-any.whl")]


def _built(kind: str, sources: Path, directory: Path, name: str) -> Path:
    command = [sys.executable, "-c", BUILD.format(kind=kind), str(directory.resolve())]
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"release: the {kind} could not be built:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return directory / name


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Build the wheel and the source distribution for an index.")
    parser.add_argument("home", help="where the sources are kept: https://…")
    parser.add_argument("--directory", type=Path, default=ROOT / "dist")
    options = parser.parse_args(argv)
    if not re.fullmatch(r"https://[^\s/]+(/[^\s?#]+)?", options.home) or options.home.endswith("/"):
        given = f", not {options.home}" if options.home else ""
        parser.error(
            "where the sources are kept must be https://HOST/PATH, without a slash in the end"
            f"{given}: make dist HOME_URL=https://HOST/PATH"
        )
    for path in build(options.home, options.directory):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
