"""PyPy to run the broker on: an environment in build/pypy with the locked requirements of its tests.

    python tools/pypy.py        makes it where it can be had, and says which PyPy it has; status 3: it cannot be had

The PyPy is the `pypy3` of this machine, if that is Python 3.11 and recent enough; otherwise the one of Debian 13, which
is unpacked into build/debian-pypy beside its own C library, where apt-get gets Debian's packages. Nothing is installed
in the system.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = ROOT / "build/pypy"
PYTHON = ENVIRONMENT / "bin/python"
REQUIREMENTS = ROOT / "requirements/pypy.txt"
SUITE = "trixie"
"""Debian 13, the first that has a PyPy of Python 3.11."""
_STAMP = ENVIRONMENT / ".made"
"""Written last, with the place of the checkout."""
_DEBIAN = ROOT / "build/debian-pypy"
_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_TIMEOUT_S = 240
_PACKAGES = ("pypy3", "libstdc++6")  # the latter is for extension modules in C++
_UNAVAILABLE = 3
_IS_RECENT = "import sys; print(sys.version_info[:2] == (3, 11) and sys.pypy_version_info >= (7, 3, 19))"


class PyPyUnavailable(RuntimeError):
    """PyPy could not be had; the message says why."""


def is_made() -> bool:
    """Whether the environment is there for this checkout, and not older than its requirements."""
    if not _STAMP.exists() or _STAMP.read_text() != str(ROOT):
        return False
    return _STAMP.stat().st_mtime >= REQUIREMENTS.stat().st_mtime


def make() -> None:
    """Makes the environment. Raises `PyPyUnavailable`, and `subprocess.CalledProcessError` where PyPy is there but its
    requirements cannot be installed.
    """
    deadline = time.monotonic() + _TIMEOUT_S
    python = _of_this_machine(deadline) or _of_debian(deadline)
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    subprocess.run([python, "-m", "venv", "--without-pip", ENVIRONMENT], check=True)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", str(PYTHON), "install")
    subprocess.run([*pip, "--require-hashes", "--only-binary=:all:", "-r", str(REQUIREMENTS)], check=True)
    (packages,) = ENVIRONMENT.glob("lib/*/site-packages")
    (packages / "groupkeeper.pth").write_text(f"{ROOT / 'src'}\n")
    _STAMP.write_text(str(ROOT))


def version() -> str:
    """PyPy's version, not that of its Python."""
    program = "import sys; print(*sys.pypy_version_info[:3], sep='.')"
    return subprocess.run([PYTHON, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def _of_this_machine(deadline: float) -> str | None:
    found = shutil.which("pypy3")
    return found if found and _is_usable(found, deadline) else None


def _is_usable(python: str, deadline: float) -> bool:
    try:
        return _run(deadline, python, "-c", _IS_RECENT) == "True"
    except PyPyUnavailable:
        return False


def _of_debian(deadline: float) -> str:
    python = str(_DEBIAN / "usr/bin/pypy3")
    if _is_usable(python, deadline):  # not where the checkout has moved: it finds its libraries by their old place
        return python
    missing = [name for name in ("apt-get", "dpkg-deb", "patchelf") if not shutil.which(name, path=_path())]
    if missing or not _KEYS.exists():
        raise PyPyUnavailable(f"no pypy3 of Python 3.11 here, and no {' and '.join(missing) or _KEYS} to get Debian's")
    new = _DEBIAN.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="debian-pypy-") as folder:
        for package in _download(Path(folder), deadline):
            _run(deadline, "dpkg-deb", "-x", str(package), str(new))
    # On an older system it needs the C library that it comes with.
    (libc,) = new.glob("usr/lib/*/libc.so.6")
    (loader,) = libc.parent.glob("ld-linux-*")
    libraries = _DEBIAN / libc.parent.relative_to(new)
    patch = ("patchelf", "--set-interpreter", str(libraries / loader.name), "--force-rpath", "--set-rpath")
    _run(deadline, *patch, str(libraries), str((new / "usr/bin/pypy3").resolve()))
    shutil.rmtree(_DEBIAN, ignore_errors=True)
    new.rename(_DEBIAN)
    return python


def _download(folder: Path, deadline: float) -> list[Path]:
    """The packages and all that they need, from where this machine gets its packages of Debian."""
    sites = _run(deadline, "apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").split()
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
    _run(deadline, *apt, "update")
    _run(deadline, *apt, "install", "-y", "--no-install-recommends", "--download-only", *_PACKAGES)
    return sorted((cache / "archives").glob("*.deb"))


def _path() -> str:
    """Where programs are looked for: first among those of the environment that runs this."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))


def _run(deadline: float, *command: str) -> str:
    """What it prints. Raises `PyPyUnavailable` with the end of what it says when it fails, or is late."""
    environ = {**os.environ, "PATH": _path(), "DEBIAN_FRONTEND": "noninteractive"}
    left = max(deadline - time.monotonic(), 1)
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environ, timeout=left, check=False
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
    except PyPyUnavailable as unavailable:
        print(f"pypy: {unavailable}: the tests on PyPy will be skipped")
        return _UNAVAILABLE
    print(f"pypy: PyPy {version()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
