"""What holds for all tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _interrupts_are_heard() -> None:
    """A shell without job control starts what runs in its background deaf to Ctrl-C, and that is inherited."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
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
