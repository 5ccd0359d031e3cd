"""PyPy to run the broker on: an environment in build/pypy with the locked requirements of its tests.

    python tools/pypy.py        makes it where it can be had, and says which PyPy it has

The PyPy is the `pypy3` of this machine, if that is Python 3.11; otherwise the one of Debian 13, which is unpacked into
build/debian-pypy beside its own C library, where apt-get gets Debian's packages. Nothing is installed in the system.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = ROOT / "build/pypy"
PYTHON = ENVIRONMENT / "bin/python"
REQUIREMENTS = ROOT / "requirements/pypy.txt"
SUITE = "trixie"
"""Debian 13, the first that has a PyPy of Python 3.11."""
_DEBIAN = ROOT / "build/debian-pypy"
_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_TIMEOUT_S = 240
# Its extensions in Rust and C++ want this, too.
_PACKAGES = ("pypy3", "libstdc++6")


class PyPyUnavailable(RuntimeError):
    """PyPy could not be had; the message says why."""


def is_made() -> bool:
    """Whether the environment is there, and not older than its requirements."""
    return PYTHON.exists() and ENVIRONMENT.stat().st_mtime >= REQUIREMENTS.stat().st_mtime


def make() -> None:
    """Makes the environment. Raises `PyPyUnavailable`."""
    python = _of_this_machine() or _of_debian()
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    _run(str(python), "-m", "venv", "--without-pip", str(ENVIRONMENT))
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", str(PYTHON), "install")
    try:
        _run(*pip, "--require-hashes", "--only-binary=:all:", "-r", str(REQUIREMENTS))
        for packages in ENVIRONMENT.glob("lib/*/site-packages"):
            (packages / "groupkeeper.pth").write_text(f"{ROOT / 'src'}\n")
        os.utime(ENVIRONMENT)
    except PyPyUnavailable:
        shutil.rmtree(ENVIRONMENT)
        raise


def version() -> str:
    """PyPy's version, not that of its Python."""
    return _run(str(PYTHON), "-c", "import sys; print(*sys.pypy_version_info[:3], sep='.')")


def _of_this_machine() -> Path | None:
    found = shutil.which("pypy3")
    if found is None:
        return None
    return Path(found) if _run(found, "-c", "import sys; print(sys.version_info[:2] == (3, 11))") == "True" else None


def _of_debian() -> Path:
    python = _DEBIAN / "usr/bin/pypy3"
    if python.exists():
        return python
    missing = [name for name in ("apt-get", "dpkg-deb", "patchelf") if _found(name) is None]
    if missing or not _KEYS.exists():
        raise PyPyUnavailable(f"no pypy3 of Python 3.11 here, and no {' and '.join(missing) or _KEYS} to get Debian's")
    with tempfile.TemporaryDirectory(prefix="debian-pypy-") as folder:
        packages = _download(Path(folder))
        shutil.rmtree(_DEBIAN, ignore_errors=True)
        for package in packages:
            _run("dpkg-deb", "-x", str(package), str(_DEBIAN))
    # On an older system it needs the C library that it comes with.
    libraries = next(_DEBIAN.glob("usr/lib/*/libc.so.6")).parent
    loader = next(libraries.glob("ld-linux-*"))
    patch = (_found("patchelf") or "patchelf", "--set-interpreter", str(loader), "--force-rpath")
    _run(*patch, "--set-rpath", str(libraries), str(python.resolve()))
    return python


def _download(folder: Path) -> list[Path]:
    """The packages and all that they need, from where this machine gets its packages of Debian."""
    sites = _run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").split()
    sites = [site for site in sites if site.rstrip("/").endswith("/debian")]
    if not sites:
        raise PyPyUnavailable("this machine gets no packages of Debian")
    sources, cache = folder / "sources", folder / "cache"
    for path in (sources, folder / "lists/partial", cache / "archives/partial"):
        path.mkdir(parents=True)
    (folder / "status").touch()  # nothing is installed: all that it needs comes
    (sources / "debian.list").write_text(f"deb [signed-by={_KEYS}] {sites[0]} {SUITE} main\n")
    settings = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": sources,
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::Cache": cache,
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": 1,
        "Acquire::http::Timeout": 20,
    }
    apt = ["apt-get", "-qq", *(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))]
    _run(*apt, "update")
    _run(*apt, "install", "-y", "--no-install-recommends", "--download-only", *_PACKAGES)
    return sorted((cache / "archives").glob("*.deb"))


def _found(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))


def _run(*command: str) -> str:
    """What it prints. Raises `PyPyUnavailable` with the end of what it says when it fails."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PyPyUnavailable(str(error)) from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or [f"status {done.returncode}"]
        raise PyPyUnavailable(f"{Path(command[0]).name}: {last[0]}")
    return done.stdout.strip()


def main() -> int:
    try:
        if not is_made():
            print("pypy: making build/pypy", flush=True)
            make()
        print(f"pypy: PyPy {version()}")
    except PyPyUnavailable as unavailable:
        print(f"pypy: {unavailable}: the tests on PyPy will be skipped")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
