"""kafka-share-groups and kafka-streams-groups where no broker answers."""

import pytest

from groupkeeper.cli.dropin import kafka_share_groups, kafka_streams_groups

SERVER = ["--bootstrap-server", "127.0.0.1:1", "--timeout", "100"]
NO_NODE = "Timed out waiting for a node assignment. Call: "


# K1099-80, K1099-81: a time-out has no class in front there, so that its words show.
@pytest.mark.parametrize(
    ("arguments", "status", "output", "errors"),
    [
        (
            "--reset-offsets --group g --all-topics --to-latest --dry-run",
            1,
            "",
            f"{NO_NODE}describeShareGroups(api=FIND_COORDINATOR)\n",
        ),
        (
            "--delete-offsets --group g --topic t",
            0,
            f"TOPIC           STATUS\nt               Error: {NO_NODE}deleteShareGroupOffsets(api=FIND_COORDINATOR)\n",
            "",
        ),
    ],
)
def test_of_share_groups(
    capsys: pytest.CaptureFixture[str], arguments: str, status: int, output: str, errors: str
) -> None:
    assert kafka_share_groups.main([*SERVER, *arguments.split()]) == status
    said, complaints = capsys.readouterr()
    assert said.endswith(output)
    assert complaints == errors


@pytest.mark.parametrize(
    "arguments",
    [
        "--list",
        "--list --state",
        "--describe --group g",
        "--describe --group g --members",
        "--describe --all-groups",
        "--delete --group g",
        "--delete-offsets --group g --all-input-topics",
        "--reset-offsets --group g --all-input-topics --to-latest --execute",
    ],
)
def test_of_streams_groups(capsys: pytest.CaptureFixture[str], arguments: str) -> None:
    assert kafka_streams_groups.main([*SERVER, *arguments.split()]) == 1
    output, errors = capsys.readouterr()
    assert output.startswith("\nError: Executing streams group command failed due to ")
    assert errors == ""
