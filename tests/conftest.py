"""What holds for all tests."""

import gc
import logging
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import adler32

import pytest
from _pytest.fixtures import FixtureDef
from hypothesis import HealthCheck, settings

from groupkeeper.cli.framework import garbage
from groupkeeper.testing.background import BackgroundBroker

_SPILT = ("Traceback (most recent call last)", "never retrieved", "never awaited", "destroyed but it is pending")
"""What no command may write, and asyncio not log."""

TIME_LIMIT_S = 60.0  # as pyproject.toml says for tests without one of their own


garbage.stop_looking()  # thousands of modules and tests are made, and none goes
# On a busy machine any example may take its time, and its making.
settings.register_profile("groupkeeper", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("groupkeeper")


def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: three more than there are processors, since tests with real clients wait much of their time."""
    has_affinity = hasattr(os, "sched_getaffinity")  # PyPy has none
    return (len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1) + 3


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """For parallel runs: what shares a costly fixture stays together, what has a long time limit starts first."""
    longest: dict[str, float] = {}
    places: dict[str, str] = {}
    for item in items:
        group = _sharing_group(item)
        if group is not None:
            item.add_marker(pytest.mark.xdist_group(group))
        places[item.nodeid] = group or item.nodeid
        marker = item.get_closest_marker("timeout")
        limit = float(marker.args[0]) if marker is not None and marker.args else TIME_LIMIT_S
        longest[places[item.nodeid]] = max(limit, longest.get(places[item.nodeid], 0.0))
    items.sort(key=lambda item: -longest[places[item.nodeid]])


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What thousands of tests are made of stays: looking through all of it would stop clients for half a second."""
    gc.collect()
    garbage.keep_all()
    garbage.look_again()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """pytest-xdist appends `@group` to the names of tests; in reports and for `--last-failed` they have none."""
    name, _, group = report.nodeid.rpartition("@")
    if name and "]" not in group and "PYTEST_XDIST_WORKER" not in os.environ:
        report.nodeid = name


def _sharing_group(item: pytest.Item) -> str | None:
    """What the tests have in common that one process has to run; None for a test that shares no fixture."""
    definitions: dict[str, list[FixtureDef[object]]] = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]
    if "spark" in definitions:  # in two processes: one would work long after all others have ended
        return f"spark{adler32(item.path.stem.encode()) % 2}"
    shared = sorted(name for name, defs in definitions.items() if defs[-1].scope in ("module", "package"))
    if not shared:
        return None
    indices = getattr(getattr(item, "callspec", None), "indices", {})
    params = [f"{name}{indices[name]}" for name in shared if name in indices]
    return "-".join([item.path.parent.name, item.path.stem, *params])


@pytest.fixture(autouse=True)
def _interrupts_are_heard() -> None:
    """A shell without job control starts what runs in its background deaf to Ctrl-C; Spark has a handler of its own."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _no_entries_in_the_users_journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Commands that tests run, in this program or in others, write to a journal of the session."""
    before = os.environ.get("GROUPKEEPER_JOURNAL")
    os.environ["GROUPKEEPER_JOURNAL"] = str(Path(tmp_path_factory.mktemp("journal")) / "journal.jsonl")
    yield
    if before is None:
        del os.environ["GROUPKEEPER_JOURNAL"]
    else:
        os.environ["GROUPKEEPER_JOURNAL"] = before


@pytest.fixture(scope="session", autouse=True)
def _no_contexts_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Commands that tests run, in this program or in others, know no cluster but the one they are given."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        environment.delenv("GROUPKEEPER_CONTEXT", raising=False)
        yield


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest) -> Iterator[BackgroundBroker]:
    """A broker in a thread for all tests of a module, whose BROKER may have arguments of `BackgroundBroker`."""
    with BackgroundBroker(**getattr(request.module, "BROKER", {})) as broker:
        yield broker


@pytest.fixture(scope="module")
def servers(broker: BackgroundBroker) -> str:
    """The broker's address."""
    return broker.bootstrap_servers


class _Listener(logging.Handler):
    def __init__(self, heard: list[str]) -> None:
        super().__init__()
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self._heard.append(record.getMessage())


@pytest.fixture(scope="session")
def _heard() -> Iterator[list[str]]:
    """What programs that tests started have written where it was captured, and what asyncio has logged in this one."""
    heard: list[str] = []
    communicate = subprocess.Popen.communicate

    def communicate_and_keep(*given: Any, **more: Any) -> Any:
        said = communicate(*given, **more)
        heard.extend(text if isinstance(text, str) else text.decode(errors="replace") for text in said if text)
        return said

    listener = _Listener(heard)
    logging.getLogger("asyncio").addHandler(listener)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "communicate", communicate_and_keep)
        yield heard
    logging.getLogger("asyncio").removeHandler(listener)


@pytest.fixture(autouse=True)
def _nothing_is_spilt(_heard: list[str]) -> Iterator[None]:
    """No command shows a traceback, no task's failure is left unseen; garbage may tell of the test before."""
    _heard.clear()
    yield
    spilt = [text for text in _heard if any(sign in text for sign in _SPILT)]
    _heard.clear()
    assert not spilt, "\n".join(spilt)
