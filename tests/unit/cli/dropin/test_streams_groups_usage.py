"""kafka-streams-groups where no broker answers; what is refused is in `refusals.txt`."""

import pytest

from groupkeeper.cli.dropin.kafka_streams_groups import main

SERVER = ["--bootstrap-server", "127.0.0.1:1", "--timeout", "100"]
FAILED = "\nError: Executing streams group command failed due to "


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
def test_nobody_answers(capsys: pytest.CaptureFixture[str], arguments: str) -> None:
    assert main([*SERVER, *arguments.split()]) == 1
    output, errors = capsys.readouterr()
    assert output.startswith(FAILED)
    assert errors == ""
