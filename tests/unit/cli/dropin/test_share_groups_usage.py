"""kafka-share-groups where no broker answers; what is refused is in `refusals.txt`."""

import pytest

from groupkeeper.cli.dropin.kafka_share_groups import main

SERVER = ["--bootstrap-server", "127.0.0.1:1"]


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
def test_nobody_answers(
    capsys: pytest.CaptureFixture[str], arguments: str, status: int, output: str, errors: str
) -> None:
    assert main([*SERVER, "--timeout", "100", *arguments.split()]) == status
    said, complaints = capsys.readouterr()
    assert said.endswith(output)
    assert complaints == errors
