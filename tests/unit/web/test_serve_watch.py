"""What `serve` says of itself on standard error and as metrics."""

import logging
from pathlib import Path

import pytest
from tests.unit.live.views import snapshot

from groupkeeper.cli.serve_watch import ServeWatch
from groupkeeper.live.archive import Archive
from groupkeeper.live.rules import Rules
from groupkeeper.operations.plans.journal import Journal
from groupkeeper.web.changes.record import ChangeRecord


async def test_a_journal_that_cannot_be_read_is_told_once_and_again_when_it_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "groupkeeper.serve")
    path = tmp_path / "journal.jsonl"
    record = ChangeRecord(Journal(path))
    watch = ServeWatch(Archive(None), Rules((), (), {}), {}, {}, record)

    async def after_a_look() -> tuple[list[str], bool]:
        await record.refresh()
        caplog.clear()
        watch.take(snapshot(at_ms=1))
        said = [each for each in caplog.messages if each.startswith("the journal")]
        return said, ("groupkeeper_journal_up", "groupkeeper_journal_up 1\n") in list(watch.samples())

    assert await after_a_look() == ([], True)
    path.mkdir()
    (said,), is_up = await after_a_look()
    assert (said.startswith("the journal: not read since "), is_up) == (True, False)
    assert await after_a_look() == ([], False)
    path.rmdir()
    assert await after_a_look() == (["the journal can be read again"], True)
