"""`groupkeeper undo` of a change that was undone already, and of one that committed nothing."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.acts import make_topic

from groupkeeper import SyncAdmin
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans.journal import Journal
from groupkeeper.operations.times import utc_text
from groupkeeper.testing.background import BackgroundBroker

PLACE = TopicPartition("orders", 0)
DELETE = ("groups", "delete-offsets", "billing", "--topic", "orders", "--execute")
Run = Callable[..., tuple[int, Any]]


def commit(servers: str, metadata: str) -> None:
    with SyncAdmin(servers) as admin:
        wanted = {PLACE: OffsetAndMetadata(0, None, metadata)}
        admin.alter_consumer_group_offsets("billing", wanted).all()


def how_to_undo_earlier(servers: str, change_id: str) -> str:
    return (
        "to undo an earlier change, name its id, which 'groupkeeper history' shows; the last before this one: "
        f"'groupkeeper undo {change_id} --bootstrap-server {servers}'"
    )


@pytest.fixture
def servers() -> Iterator[str]:
    with BackgroundBroker() as broker:
        make_topic(broker.bootstrap_servers, PLACE.topic)
        yield broker.bootstrap_servers


def test_a_change_that_was_undone_is_not_undone_again(run: Run, servers: str, journal: Journal) -> None:
    commit(servers, "before")
    assert run(*DELETE)[0] == 0
    assert run("undo", "--execute")[0] == 0
    change, undo = (one.head for one in journal.summaries()[0])
    said = f"{change.id} was undone already by {undo.user} on {undo.host} at {utc_text(undo.time_ms)} ({undo.id})"
    for _ in range(2):
        status, report = run("undo", change.id, "--execute")
        assert (status, [one["error"] for one in report["problems"]]) == (1, ["ALREADY_UNDONE"])
        assert report["problems"][0]["message"] == said
        commit(servers, "of the group")
    rows = run("history")[1]["changes"]
    assert [(row["result"], row["undone_by"]) for row in rows] == [("undone", undo.id), ("applied", None)]
    # Another change does the same: the undo fits again.
    assert run(*DELETE)[0] == 0
    for options in ((), ("--execute",)):
        status, report = run("undo", change.id, *options)
        assert (status, report["notes"][0]) == (0, said)


def test_a_change_that_committed_nothing_is_settled(run: Run, servers: str, journal: Journal) -> None:
    commit(servers, "before")
    assert run(*DELETE)[0] == 0
    journal.path.write_bytes(journal.path.read_bytes().splitlines(keepends=True)[0])  # as if it had been killed
    commit(servers, "before")
    status, report = run("undo")
    said = "nothing of the change is there: --execute writes to the journal that it is undone"
    assert (status, report["notes"][-1], len(journal.summaries()[0])) == (0, said, 1)
    assert run("undo", "--execute")[0] == 0
    report = run("history")[1]
    assert ([row["result"] for row in report["changes"]], report["notes"]) == (["undone", "applied"], [])
    assert [one["error"] for one in run("undo")[1]["problems"]] == ["NOTHING_TO_UNDO"]


def test_where_the_offset_has_moved_elsewhere_an_earlier_change_is_named(
    run: Run, servers: str, journal: Journal
) -> None:
    commit(servers, "before")
    for number in range(2):
        assert run(*DELETE)[0] == 0
        commit(servers, f"of the group {number}")
    first, second = (one.head.id for one in journal.summaries()[0])
    stays = "nothing was changed; undo restores only offsets that are still as the change left them"
    later = ": if later changes moved them, undo those first"
    for words, said in [
        ((), f"{stays}; {how_to_undo_earlier(servers, first)}"),
        ((second, "--if-out-of-range", "clamp"), f"{stays}{later}; {how_to_undo_earlier(servers, first)}"),
        ((first,), f"{stays}{later}; no earlier change is left to undo"),
    ]:
        status, report = run("undo", "--execute", *words)
        assert (status, [one["error"] for one in report["problems"]]) == (1, ["STALE_PLAN"])
        assert report["notes"][-1] == said


def test_where_all_is_as_before_already_an_earlier_change_is_named(run: Run, servers: str, journal: Journal) -> None:
    commit(servers, "before")
    for _ in range(2):
        assert run(*DELETE)[0] == 0
        commit(servers, "before")
    first, second = (one.head.id for one in journal.summaries()[0])
    as_before = "there was nothing to do: all that {} changed is as before it already; {}"
    for words, said in [
        ((), as_before.format(second, how_to_undo_earlier(servers, first))),
        (("--execute",), as_before.format(second, how_to_undo_earlier(servers, first))),
        ((first,), as_before.format(first, "no earlier change is left to undo")),
    ]:
        status, report = run("undo", *words)
        assert (status, [row["result"] for row in report["changes"]]) == (0, ["already"])
        assert report["notes"][-1] == said
