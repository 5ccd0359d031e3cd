"""Clones of several groups by patterns, and of applications of Kafka Streams."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acts import commit, make_topic
from tests.copies import items, write

from groupkeeper.cli.main import main
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.plans.document import read
from groupkeeper.operations.plans.model import Plan
from groupkeeper.testing.background import BackgroundBroker

PLACE = TopicPartition("orders", 0)
GROUPS = ("app-one", "app-two", "app-test", "other", "x1", "x[1]")


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[str, str]]:
    with BackgroundBroker() as here, BackgroundBroker() as there:
        for servers in (here.bootstrap_servers, there.bootstrap_servers):
            make_topic(servers, "orders")
            write(servers, "orders", items(50))
        for group in GROUPS:
            commit(here.bootstrap_servers, group, {PLACE: 20})
        yield here.bootstrap_servers, there.bootstrap_servers


def planned(clusters: tuple[str, str], folder: Path, *words: str, status: int = 0) -> Plan:
    file = folder / f"{time.time_ns()}.json"
    where = ["--from-bootstrap-server", clusters[0], "--bootstrap-server", clusters[1]]
    assert main(["plan", "clone", *words, "--save", str(file), *where]) == status
    return read(file.read_text()) if file.exists() else Plan(None, ())


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["--group", "app-*"], {"app-one", "app-test", "app-two"}),
        (["--group", "app-*", "--except", "*-test"], {"app-one", "app-two"}),
        (["--group", "other", "--group", "app-t*", "--except", "app-two"], {"other", "app-test"}),
        (["--group", "app-(one|test)", "--except", ".*t", "--regex"], {"app-one"}),
        (["--all-groups", "--except", "app-*", "--except", "x*", "--topic", "orders"], {"other"}),
        (["--group", "x*", "--except", "x[1]"], {"x1"}),
    ],
)
def test_groups_are_meant_by_patterns(
    clusters: tuple[str, str], tmp_path: Path, words: list[str], meant: set[str]
) -> None:
    assert {group.group_id for group in planned(clusters, tmp_path, *words).groups} == meant


def test_a_pattern_without_groups_is_told(
    clusters: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert planned(clusters, tmp_path, "--group", "nobody-*").groups == ()
    assert "no group matches 'nobody-*'" in capsys.readouterr().err


def test_an_application_of_kafka_streams_needs_its_state(
    clusters: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = clusters
    group = f"counts{time.time_ns()}"
    for one in (group, f"{group}-more"):
        commit(here, one, {PLACE: 20})
    make_topic(here, f"{group}-store-changelog", 2)
    make_topic(here, f"{group}-by-name-repartition")
    make_topic(here, f"{group}-more-store-changelog")  # of the other application
    plan = planned(clusters, tmp_path, group, status=1)
    assert plan.groups == ()
    said = capsys.readouterr().err
    assert f"{group}-store-changelog is not there" in said
    assert f"{group}-by-name-repartition is not there" in said
    assert f"{group}-more-store" not in said
    # By name its topics are meant all the same.
    assert len(planned(clusters, tmp_path, group, "--topic", "orders").groups) == 1
    assert "would go on without the state" in capsys.readouterr().err
    make_topic(there, f"{group}-by-name-repartition")
    make_topic(there, f"{group}-store-changelog")
    assert planned(clusters, tmp_path, group, status=1).groups == ()
    assert "has another number of partitions" in capsys.readouterr().err


def test_an_application_whose_state_is_copied(
    clusters: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = f"counts{time.time_ns()}"
    commit(clusters[0], group, {PLACE: 20})
    for servers in clusters:
        make_topic(servers, f"{group}-store-changelog")
    assert len(planned(clusters, tmp_path, group).groups) == 1
    assert "restores its state from copies of" in capsys.readouterr().err
    assert main(["plan", "clone", group, "other", "--output", "json", "--bootstrap-server", clusters[0]]) == 0
    found = json.loads(capsys.readouterr().out)
    assert any("would go on without the state" in str(note) for note in found["notes"])


@pytest.mark.parametrize("is_here", [False, True])
def test_start_offsets_of_a_share_group(
    clusters: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], is_here: bool
) -> None:
    """Planned, applied and undone; the group is made."""
    here, there = (clusters[0], clusters[0]) if is_here else clusters
    group, tp = f"shared{time.time_ns()}", TopicPartition("orders", 0)
    target = f"{group}-copy"

    async def start(servers: str, of: str, offset: int | None = None) -> int | None:
        async with Admin(servers) as admin:
            if offset is not None:
                (await admin.alter_share_group_offsets(of, {tp: offset})).all()
            found = (await admin.list_share_group_offsets({of: None})).result(of).done.get(tp)
        return None if found is None else found.start_offset

    assert asyncio.run(start(here, group, 20)) == 20
    file, where = str(tmp_path / "plan.json"), ["--bootstrap-server", there]
    from_there = [] if is_here else ["--from-bootstrap-server", here]
    assert main(["plan", "clone", group, target, "--save", file, *from_there, *where]) == 0
    assert "already acknowledged are delivered again" in capsys.readouterr().err
    ((change,),) = [each.changes.values() for each in read(Path(file).read_text()).groups]
    assert change.after is not None
    assert (change.after.offset, change.certainty) == (20, "identity")
    assert main(["apply", file, "--show-command", *where]) == 1
    assert "apply the plan instead" in capsys.readouterr().err
    assert main(["apply", file, "--execute", *where]) == 1  # not without --create
    assert main(["apply", file, "--execute", "--create", *where]) == 0
    assert asyncio.run(start(there, target)) == 20
    assert main(["undo", "--execute", *where]) == 0
    assert asyncio.run(start(there, target)) is None
