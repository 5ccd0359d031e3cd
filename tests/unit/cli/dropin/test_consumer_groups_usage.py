"""Help and version of kafka-consumer-groups; what is refused is in `refusals.txt`."""

import pytest

from groupkeeper.cli.dropin.consumer_groups_options import TABLE
from groupkeeper.cli.dropin.kafka_consumer_groups import main


# K122-12
def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version", "--list"]) == 0
    assert capsys.readouterr() == ("4.4.0\n", "")
    assert main(["--help", "--version"]) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    purpose = "This tool helps to list, describe, delete and manage the offsets of consumer groups."
    assert errors.startswith(purpose + "\nOption")
    assert all(f"--{name}" in errors for name in TABLE.options)
    assert all(len(line) <= 80 for line in errors.splitlines()[1:])
