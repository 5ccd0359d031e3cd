"""Usage of kafka-streams-groups beside what is recorded: brokers that don't answer, and files."""

import pytest

from groupkeeper.cli.dropin.kafka_streams_groups import main

SERVER = ["--bootstrap-server", "127.0.0.1:1", "--timeout", "100"]
FAILED = "\nError: Executing streams group command failed due to "


def test_a_server_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 1
    assert capsys.readouterr().err.startswith('Missing required argument "[bootstrap-server]"\nOption ')


def test_without_arguments_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 1
    assert capsys.readouterr().err.startswith(
        "This tool helps to list, describe, delete and manage the offsets of streams groups.\nOption "
    )


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


def test_a_file_that_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SERVER, "--list", "--command-config", "/nowhere.properties"]) == 1
    said = f"{FAILED}java.nio.file.NoSuchFileException: /nowhere.properties\n"
    assert capsys.readouterr() == (said, "")


def test_kafka_4_3_has_no_topologies(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUPKEEPER_KAFKA_TOOLS", "4.3.1")
    assert main(["--bootstrap-server", "127.0.0.1:1", "--describe", "--group", "g", "--topology"]) == 1
    assert capsys.readouterr() == ("", "topology is not a recognized option\n")
