"""Usage of kafka-share-groups: what is refused before any broker is asked, in which words and order."""

import pytest

from groupkeeper.cli.dropin.kafka_share_groups import main

SERVER = ["--bootstrap-server", "127.0.0.1:1"]
SCOPES = "takes one of these options: [all-topics], [from-file], [topic]"
SCENARIOS = (
    "takes one of these options: [from-file], [to-current], [to-datetime], [to-earliest], [to-latest], [to-offset]"
)


def refused(capsys: pytest.CaptureFixture[str], arguments: str, *, server: bool = True) -> str:
    """Standard error without the help, of a call that exits with 1 and prints nothing else."""
    status = main([*(SERVER if server else []), *arguments.split()])
    output, errors = capsys.readouterr()
    assert (status, output) == (1, "")
    return errors.partition("Option     ")[0].rstrip("\n")


# K1099-70, K1099-77, K1099-78
# Others are in tests/cli/goldens/share-empty.txt, with what Apache Kafka prints.
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "--describe --group g --members --state x",
            "Option [describe] takes at most one of these options: [members], [offsets], [state]",
        ),
        ("--reset-offsets --group g", "Option [reset-offsets] takes the option: [execute] or [dry-run]"),
        ("--reset-offsets --execute --all-topics", "Option [reset-offsets] takes the option: [group]"),
        ("--reset-offsets --execute --group g", f"Option [reset-offsets] {SCOPES}"),
        ("--reset-offsets --execute --group g --all-topics", f"Option [reset-offsets] {SCENARIOS}"),
        ("--reset-offsets --execute --group g --to-offset 1", f"Option [reset-offsets] {SCOPES}"),
        (
            "--reset-offsets --execute --group g --all-topics --topic t",
            'Option "[topic]" can\'t be used with option "[all-topics]"',
        ),
        (
            "--reset-offsets --execute --group g --all-topics --from-file f --to-latest",
            'Option "[all-topics]" can\'t be used with option "[from-file]"',
        ),
        (
            "--reset-offsets --execute --group g --from-file f --to-latest",
            'Option "[to-latest]" can\'t be used with option "[from-file]"',
        ),
        (
            "--reset-offsets --execute --group g --all-topics --to-latest --to-earliest",
            'Option "[to-earliest]" can\'t be used with option "[to-latest]"',
        ),
    ],
)
def test_combinations_that_make_no_sense(capsys: pytest.CaptureFixture[str], arguments: str, message: str) -> None:
    assert refused(capsys, arguments) == message


# What Kafka 4.3.1 says otherwise, or takes.
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--delete", "Option [delete] takes the options [group] or [all-groups]"),
        ("--delete --group g --topic t --all-topics", "Option [delete] does not take the option: [topic]"),
        (
            "--reset-offsets --execute --group g",
            "Option [reset-offsets] takes one of these options: [all-topics], [topic]",
        ),
        (
            "--reset-offsets --execute --group g --all-topics --topic t",
            "Option [reset-offsets] takes one of these options: [to-datetime], [to-earliest], [to-latest]",
        ),
        (
            "--reset-offsets --execute --group g --all-topics --topic t --from-file f",
            'Option "[topic]" can\'t be used with option "[all-topics]"',
        ),
    ],
)
def test_combinations_that_make_no_sense_to_kafka_4_3(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: str, message: str
) -> None:
    monkeypatch.setenv("GROUPKEEPER_KAFKA_TOOLS", "4.3.1")
    assert refused(capsys, arguments) == message


def test_the_release_that_is_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {
        "": ("4.4.0", "This tool helps to list, describe, delete and manage the offsets of share groups."),
        "4.3.1": ("4.3.1", "This tool helps to list, describe, reset and delete share groups."),
    }
    for wanted, (version, purpose) in versions.items():
        monkeypatch.setenv("GROUPKEEPER_KAFKA_TOOLS", wanted)
        assert refused(capsys, "", server=False) == purpose
        assert main(["--version"]) == 0
        assert capsys.readouterr() == (f"{version}\n", "")
    monkeypatch.setenv("GROUPKEEPER_KAFKA_TOOLS", "3.9.1")
    assert refused(capsys, "--list") == (
        "GROUPKEEPER_KAFKA_TOOLS is 3.9.1, and must be 4.4.0 or 4.3.1: the release whose output is printed"
    )


def test_a_server_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "--list", server=False) == 'Missing required argument "[bootstrap-server]"'


# K1099-70, K1099-77: consumer groups only have these.
@pytest.mark.parametrize("option", ["shift-by", "by-duration", "type"])
def test_options_that_share_groups_lack(capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert refused(capsys, f"--reset-offsets --{option} 1") == f"{option} is not a recognized option"


# K1099-78
@pytest.mark.parametrize("text", ["Sleeping", "stable,Sleeping", "Assigning", "Unknown"])
def test_states_of_share_groups(capsys: pytest.CaptureFixture[str], text: str) -> None:
    message = f"Invalid state list '{text}'. Valid states are: Empty, Stable, Dead"
    assert refused(capsys, f"--list --state {text}") == message


# K1099-82
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--list --timeout soon", "Cannot parse argument 'soon' of option timeout"),
        ("--list --timeout soon --to-offset 1e3", "Cannot parse argument '1e3' of option to-offset"),
        (
            "--delete-offsets --group g --group h --topic t",
            "Found multiple arguments for option group, but you asked for only one",
        ),
        ("--list --command-config /nowhere.properties", "java.nio.file.NoSuchFileException: /nowhere.properties"),
    ],
)
def test_what_fails_while_executing_exits_with_0(
    capsys: pytest.CaptureFixture[str], arguments: str, message: str
) -> None:
    assert main([*SERVER, *arguments.split()]) == 0
    assert capsys.readouterr() == (f"\nError: Executing share group command failed due to {message}\n", "")


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
