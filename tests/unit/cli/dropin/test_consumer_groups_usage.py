"""Usage of kafka-consumer-groups: what is refused before any broker is asked, in which words and order."""

import pytest

from groupkeeper.cli.dropin.consumer_groups_options import TABLE, UNDECIDED
from groupkeeper.cli.dropin.kafka_consumer_groups import main

SERVER = ["--bootstrap-server", "127.0.0.1:1"]
ONE_ACTION = (
    "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, --delete-offsets, "
    "--validate-regex"
)
ONE_OF_GROUPS = "takes one of these options: [group], [all-groups]"


def refused(capsys: pytest.CaptureFixture[str], arguments: str, *, server: bool = True) -> str:
    """Standard error without the help, of a call that exits with 1 and prints nothing else."""
    status = main([*(SERVER if server else []), *arguments.split()])
    output, errors = capsys.readouterr()
    assert (status, output) == (1, "")
    return errors.partition("Option     ")[0].rstrip("\n")


# K122-82, K518-44, K496-50, K122-70, K122-71, K122-74, K122-81
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", ONE_ACTION),
        ("--group g", ONE_ACTION),
        ("--delete --describe --all-groups", ONE_ACTION),
        ("--list --describe --group g", 'Option "[group]" can\'t be used with option "[list]"'),
        ("--describe", f"Option [describe] {ONE_OF_GROUPS}"),
        ("--delete", f"Option [delete] {ONE_OF_GROUPS}"),
        ("--reset-offsets --execute", f"Option [reset-offsets] {ONE_OF_GROUPS}"),
        ("--describe --group g --all-groups", 'Option "[group]" can\'t be used with option "[all-groups]"'),
        ("--describe --group g --topic t", 'Option "[topic]" can\'t be used with option "[describe]"'),
        (
            "--describe --group g --members --state x",
            "Option [describe] takes at most one of these options: [members], [offsets], [state]",
        ),
        ("--describe --group g --state Stable", "Option [describe] does not take a value for [state]"),
        (
            "--delete --group g --topic t",
            "The consumer does not support topic-specific offset deletion from a consumer group.",
        ),
        ("--delete-offsets --group g", "Option [delete-offsets] takes the following options: [group], [topic]"),
        (
            "--reset-offsets --group g --dry-run --execute",
            "Option [reset-offsets] only accepts one of [execute] and [dry-run]",
        ),
        (
            "--reset-offsets --group g --to-earliest --to-latest --execute",
            'Option "[to-earliest]" can\'t be used with option "[to-latest]"',
        ),
        (
            "--reset-offsets --group g --to-latest --to-offset 1 --to-current --execute",
            'Option "[to-offset]" can\'t be used with option "[to-current]"',
        ),
    ],
)
def test_combinations_that_make_no_sense(capsys: pytest.CaptureFixture[str], arguments: str, message: str) -> None:
    assert refused(capsys, arguments) == message


def test_without_arguments_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "", server=False) == (
        "This tool helps to list, describe, delete and manage the offsets of consumer groups."
    )


def test_a_server_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "--list", server=False) == 'Missing required argument "[bootstrap-server]"'


# K122-71
def test_a_reset_that_is_neither_dry_nor_executed_is_warned_about(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "--reset-offsets") == f"{UNDECIDED}\nOption [reset-offsets] {ONE_OF_GROUPS}"


# K122-86
def test_errors_of_the_parser_come_without_help(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        ("--list --zap", "zap is not a recognized option\n"),
        ("--describe --group", "Option group requires an argument\n"),
        ("--list --members", "Option(s) [members] are unavailable given other options on the command line\n"),
    ):
        assert main([*SERVER, *arguments.split()]) == 1
        assert capsys.readouterr() == ("", message)


# K122-83: errors while executing exit with 0, and are told on standard output
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--list --timeout abc", "Cannot parse argument 'abc' of option timeout"),
        ("--list --to-offset x", "Cannot parse argument 'x' of option to-offset"),
        ("--list --timeout x --timeout 2", "Cannot parse argument 'x' of option timeout"),
        ("--list --timeout 1 --timeout 2", "Found multiple arguments for option timeout, but you asked for only one"),
        ("--list --command-config none", "java.nio.file.NoSuchFileException: none"),
        (
            "--list --bootstrap-server h:1",
            "Found multiple arguments for option bootstrap-server, but you asked for only",
        ),
    ],
)
def test_errors_while_executing(capsys: pytest.CaptureFixture[str], arguments: str, message: str) -> None:
    assert main([*SERVER, *arguments.split()]) == 0
    output, errors = capsys.readouterr()
    assert output.startswith(f"\nError: Executing consumer group command failed due to {message}")
    assert errors == ""


@pytest.mark.parametrize(
    ("servers", "message"),
    [
        ("nonsense", "Failed to create new KafkaAdminClient"),
        ("127.0.0.1:99999", "Failed to create new KafkaAdminClient"),
        ("", "Failed to create new KafkaAdminClient"),
        (",", "Configuration 'bootstrap.servers' values must not be empty."),
    ],
)
def test_servers_that_are_none(capsys: pytest.CaptureFixture[str], servers: str, message: str) -> None:
    assert main(["--list", "--bootstrap-server", servers]) == 0
    assert capsys.readouterr().out == f"\nError: Executing consumer group command failed due to {message}\n"


# K518-43
def test_invalid_states_and_types_are_errors_of_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "--list --state Sleeping --type mystery") == (
        "Invalid types list 'mystery'. Valid types are: Classic, Consumer"
    )
    assert refused(capsys, "--list --state Stable,,Empty").startswith(
        "Invalid state list 'Stable,,Empty'. Valid states are: PreparingRebalance, CompletingRebalance, Stable"
    )


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


# K122-81
def test_regular_expressions_are_judged_without_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--validate-regex", "orders.*", "--timeout", "abc"]) == 0
    assert main(["--validate-regex", "[a"]) == 0
    assert capsys.readouterr().out == (
        "The regular expression `orders.*` is valid.\nThe regular expression `[a` is invalid: missing closing ].\n"
    )
