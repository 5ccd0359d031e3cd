"""`groupkeeper groups …` on several clusters at once: a column with their names, and what fails of one apart."""

import asyncio
import json
import signal
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.cli.groups.test_groups_watch import end, watching
from tests.cli.stages import SETTINGS, Stage, set_up

from groupkeeper.cli.main import main
from groupkeeper.client.admin.types import OffsetAndMetadata
from groupkeeper.testing.background import BackgroundBroker

PROD = Stage(
    "prod",
    {"orders": (10, 20), "payments": (5,)},
    {("orders", 1): 5},
    {
        "billing": {("orders", 0): OffsetAndMetadata(4), ("orders", 1): OffsetAndMetadata(2)},
        "search": {("payments", 0): OffsetAndMetadata(5)},
    },
)
DR = Stage("dr", {"orders": (100,)}, {}, {"billing": {("orders", 0): OffsetAndMetadata(1)}})
GONE = "127.0.0.1:1"
OF_GONE = f"bootstrap.servers={GONE}\ndefault.api.timeout.ms=300\n"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[str]]:
    folder = tmp_path_factory.mktemp("stages")
    with BackgroundBroker(properties=SETTINGS) as prod, BackgroundBroker(properties=SETTINGS) as dr:
        asyncio.run(set_up(PROD, prod.bootstrap_servers, folder))
        asyncio.run(set_up(DR, dr.bootstrap_servers, folder))
        yield prod.bootstrap_servers, dr.bootstrap_servers


@pytest.fixture(autouse=True)
def contexts(servers: Sequence[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """prod and dr, in a folder of their own."""
    folder = tmp_path / "groupkeeper" / "contexts"
    folder.mkdir(parents=True)
    for name, where in zip(("prod", "dr"), servers, strict=True):
        (folder / f"{name}.properties").write_text(f"bootstrap.servers={where}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return folder


def test_all_contexts_are_listed_by_their_names(groupkeeper: Any) -> None:
    status, report = groupkeeper("groups", "list", "--context", "*")
    assert (status, [(row["cluster"], row["group"]) for row in report["groups"]]) == (
        0,
        [("dr", "billing"), ("prod", "billing"), ("prod", "search")],
    )
    both = groupkeeper("groups", "list", "--context", "prod", "--context", "dr")[1]["groups"]
    assert [row["cluster"] for row in both] == ["prod", "prod", "dr"]
    assert {row["cluster"] for row in groupkeeper("groups", "list", "--context", "p*")[1]["groups"]} == {"prod"}


def test_the_table_begins_with_the_cluster_where_there_are_several(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["groups", "list", "--context", "*"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["CLUSTER", "GROUP", "TYPE", "STATE"]
    assert main(["groups", "list", "--context", "prod"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["GROUP", "TYPE", "STATE"]


def test_the_worst_of_all_clusters_come_first(groupkeeper: Any) -> None:
    words = ["offsets", "--all-groups", "--context", "*", "--sum", "group", "--sort", "readable", "--top", "2"]
    status, report = groupkeeper("groups", *words)
    assert status == 0
    found = [(row["cluster"], row["group"], row["readable"]) for row in report["lag_by_group"]]
    assert found == [("dr", "billing", 99), ("prod", "billing", 21)]


def test_laggards_and_statuses(groupkeeper: Any) -> None:
    status, report = groupkeeper("groups", "offsets", "--all-groups", "--context", "*", "--min-lag", "15")
    assert (status, [(row["cluster"], row["partition"], row["readable"]) for row in report["offsets"]]) == (
        0,
        [("dr", 0, 99), ("prod", 1, 15)],
    )
    statuses = ("--status", "below_log_start,deleted")
    status, report = groupkeeper("groups", "offsets", "--all-groups", "--context", "*", *statuses)
    assert [(row["cluster"], row["group"], row["lost"]) for row in report["offsets"]] == [("prod", "billing", 3)]


def test_where_the_lag_goes(groupkeeper: Any, capsys: pytest.CaptureFixture[str]) -> None:
    status, report = groupkeeper("groups", "offsets", "billing", "--context", "*", "--trend", "10ms", "--sum", "group")
    assert (status, {(row["trend"], row["produced_per_s"]) for row in report["lag_by_group"]}) == (0, {("steady", 0)})
    assert {row["trend"] for row in groupkeeper("groups", "offsets", "billing", "--context", "*")[1]["offsets"]} == {
        None
    }
    assert main(["groups", "offsets", "billing", "--context", "dr", "--trend", "10ms"]) == 0
    assert "TREND" in capsys.readouterr().out.splitlines()[0]


def test_notes_on_all_clusters_are_said_once(groupkeeper: Any) -> None:
    notes = groupkeeper("groups", "offsets", "--all-groups", "--context", "*")[1]["notes"]
    assert notes == ["both clusters: group billing has no members", "prod: group search has no members"]


def test_a_cluster_that_is_gone_takes_nothing_from_the_others(groupkeeper: Any, contexts: Any) -> None:
    (contexts / "a-gone.properties").write_text(OF_GONE)
    (contexts / "broken.properties").write_text("security.protocol=SSL\n")
    status, report = groupkeeper("groups", "list", "--context", "*")
    assert (status, len(report["groups"])) == (1, 3)
    found = sorted((one["cluster"], one["error"]) for one in report["problems"])
    assert found == [("a-gone", "CONNECTION_FAILED"), ("broken", "CONTEXT_UNUSABLE")]


def test_a_group_needs_not_be_in_all_clusters(groupkeeper: Any, contexts: Any) -> None:
    status, report = groupkeeper("groups", "offsets", "search", "--context", "*")
    assert (status, report["problems"], report["notes"][-1]) == (0, [], "group search is not in dr")
    status, report = groupkeeper("groups", "offsets", "nope", "--context", "*")
    assert (status, {one["cluster"] for one in report["problems"]}) == (1, {"prod", "dr"})
    # Where not all clusters could be asked, it may be there.
    (contexts / "gone.properties").write_text(OF_GONE)
    assert groupkeeper("groups", "offsets", "search", "--context", "*")[0] == 1


@pytest.mark.usefixtures("journal")
def test_the_history_of_clusters_has_their_names(groupkeeper: Any) -> None:
    def history(*words: str) -> list[tuple[object, ...]]:
        status, report = groupkeeper("history", *words)
        assert status == 0
        return [(row["cluster"], row["names"]) for row in report["changes"]]

    for name, group in (("dr", "billing"), ("prod", "search")):
        reset = ("groups", "reset", group, "--all-topics", "--to-earliest")
        for words in (reset, ("undo",)):
            assert groupkeeper(*words, "--execute", "--context", name)[0] == 0
    assert history("--context", "*") == [("dr", "billing")] * 2 + [("prod", "search")] * 2
    assert history("--context", "prod") == [("prod", "search")] * 2
    assert history("--context", "*", "--group", "billing") == [("dr", "billing")] * 2
    assert history() == [(None, "billing")] * 2 + [(None, "search")] * 2


def test_states_and_members_have_the_cluster_too(groupkeeper: Any) -> None:
    _, report = groupkeeper("groups", "describe", "--all-groups", "--view", "state", "--context", "*")
    assert [row["cluster"] for row in report["groups"]] == ["dr", "prod", "prod"]
    assert groupkeeper("groups", "members", "--all-groups", "--context", "*")[1]["members"] == []


def test_several_clusters_are_followed() -> None:
    with watching(None, "--all-groups", "--context", "*", "--output", "json") as process:
        seen: set[str] = set()
        while seen != {"prod", "dr"}:
            assert process.stdout is not None
            seen.add(json.loads(process.stdout.readline())["cluster"])
        end(process)


def test_a_cluster_that_is_gone_is_told_while_others_are_watched_and_joins_them(contexts: Any, tmp_path: Path) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        gone = f"127.0.0.1:{found.getsockname()[1]}"
    (contexts / "gone.properties").write_text(OF_GONE.replace(GONE, gone))
    with watching(None, "--all-groups", "--context", "*") as process:
        assert process.stderr is not None
        said = iter(process.stderr.readline, "")
        assert any(line.startswith(f"error: cluster gone: {gone}: connection refused") for line in said)
        with BackgroundBroker(properties={**SETTINGS, "listeners": f"PLAINTEXT://{gone}"}):
            asyncio.run(set_up(DR, gone, tmp_path))
            assert "note: gone: it replies again\n" in said
            assert process.stdout is not None
            clusters = set()
            while "gone" not in clusters:
                clusters.add(process.stdout.readline().split()[0])
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
    assert clusters == {"CLUSTER", "prod", "dr", "gone"}
    assert "error:" not in errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--context", "x*"], "argument --context: no context matches 'x*'; known: dr, prod"),
        (["--context", "prod", "--context", "nope"], "there is no context 'nope'; known: dr, prod"),
        (["--context", "*", "--bootstrap-server", GONE], "not allowed with several contexts, which have their own"),
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], words: Sequence[str], message: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["groups", "list", *words])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_the_brokers_of_one_context_may_be_others(groupkeeper: Any, servers: Sequence[str]) -> None:
    status, report = groupkeeper("groups", "list", "--context", "prod", "--bootstrap-server", servers[1])
    assert (status, [(row["cluster"], row["group"]) for row in report["groups"]]) == (0, [("prod", "billing")])


@pytest.mark.parametrize(
    ("filters", "left"), [("--min-lag 1000", []), ("--min-lag 50", ["dr"]), ("--status deleted", [])]
)
def test_what_filters_leave_out_is_not_told_of(groupkeeper: Any, filters: str, left: list[str]) -> None:
    status, report = groupkeeper("groups", "offsets", "--all-groups", "--context", "*", *filters.split())
    assert (status, sorted({row["cluster"] for row in report["offsets"]})) == (0, left)
    assert not any("search" in note for note in report["notes"])
    told = " ".join(report["notes"])
    assert f"matches {filters}" in told
    assert ("has no members" in told) == bool(left)
