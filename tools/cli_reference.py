"""Writes docs/cli.md, the reference of the command lines, from the tables that they read their options with."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path

from groupkeeper.cli import broker
from groupkeeper.cli.arguments import parser
from groupkeeper.cli.consumer_groups_options import TABLE as CONSUMER_GROUPS
from groupkeeper.cli.help_text import described, signature
from groupkeeper.cli.kafka_get_offsets import TABLE as GET_OFFSETS
from groupkeeper.cli.kafka_groups import TABLE as GROUPS
from groupkeeper.cli.options import OptionTable

TARGET = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
DROP_INS = (CONSUMER_GROUPS, GROUPS, GET_OFFSETS)

INTRODUCTION = """\
# Command lines

Written by `tools/cli_reference.py` from the option tables: `make docs` writes it again.

Two kinds of commands come with the package. The *drop-in* commands have the name, the options, the output and the
exit status of an official tool of Kafka 4.3.1, down to the blanks: scripts keep working. `groupkeeper …` is the better
form of the same work: it prints JSON when asked to, shows what failed beside what worked, and exits with 1 when
something failed and with 2 for a wrong usage.
"""

DEFECTS = """\
The defects of the official tool are kept under its name, and done right by `groupkeeper groups`:

| `kafka-consumer-groups` | `groupkeeper groups` |
|---|---|
| exits with 0 when the execution failed | exits with 1 |
| describes nothing when one group or topic cannot be described | shows the others, and the problem beside them |
| `--delete` deletes share groups and Connect's groups too | refuses what isn't a consumer group |
| `--delete-offsets` succeeds for offsets that were never committed | names them |
| a line of a reset plan without an offset resets to 0 | refuses the plan |
| a reset drops the commit's metadata and leader epoch | keeps the metadata, and the epoch where it is still right |
| `--to-current` keeps an offset that the log doesn't hold | moves it into the log |
| `--shift-by` can overflow | doesn't |
| a reset of several groups stops at the first failure | goes on with the other groups, and lists what failed |
"""


GROUPS_OUTPUT = """\
### groupkeeper groups

A wrong usage (an option or value that isn't known, a file that cannot be read or isn't what it should be) is refused
with exit status 2 before a broker is asked anything. After that the exit status is 0 when everything asked for was
done, and 1 when there are problems. Notes and problems are lines on standard error, which say `note: ` or `error: `;
so is, after one second, that no broker has let the client in yet.

With `--output json` standard output is always one JSON object, also when no broker can be reached: the rows under one
key, and `problems`. Absent values are `null`, and keys are never left out.

| command | key | each row |
|---|---|---|
| `list` | `groups` | `group`, `type`, `state` (`null`: the broker is too old to tell) |
| `describe` | `offsets` | `group`, `topic`, `partition`, `current_offset`, `log_end_offset`, `lag`, `member_id`, \
`client_id` |
| `describe --view members` | `members` | `group`, `member_id`, `instance_id`, `client_id`, `host`, `epoch`, \
`assignment`, `target_assignment`; the last two are lists of `{"topic", "partition"}`, or `null` when not known |
| `describe --view state` | `groups` | `group`, `type`, `state`, `members` (a number), `assignor`, `coordinator` \
(`host:port`), `group_epoch`, `target_epoch` |
| `reset` | `offsets` | `group`, `topic`, `partition`, `current_offset`, `new_offset`, `note` (why it isn't the offset \
asked for) |
| `delete-offsets` | `deleted` | `group`, `topic`, `partition`, `deleted_offset` |
| `delete` | `deleted` | `group` |

`reset` has the key `executed` too: `true` when the rows are committed, `false` when they only show what would be.

A problem has `error`, a name in capitals: of Kafka's error codes (`GROUP_ID_NOT_FOUND`) where a broker refused, and
otherwise our own (`CONNECTION_FAILED`, `CALL_TIMED_OUT`, `GROUP_IS_ACTIVE`, `NO_PLAN`, ...); `message`, for people; and
`group`, `topic`, `partition` and `broker`, what it is about, each `null` where it isn't about one.
"""


def document() -> str:
    """The whole reference."""
    parts = [INTRODUCTION]
    for table in DROP_INS:
        parts.append(f"## {table.tool}\n\n{table.summary}\n\n{_options(table)}")
        if table is CONSUMER_GROUPS:
            parts.append(DEFECTS)
    parts.append("## groupkeeper\n")
    parts.append(_command(broker._parser()))
    parts.append(GROUPS_OUTPUT)
    parts += [_command(command) for command in _leaves(parser()) if command.prog != "groupkeeper broker"]
    return "\n".join(parts)


def _options(table: OptionTable) -> str:
    rows = [f"| `{signature(table[name])}` | {_cell(described(table[name]))} |" for name in sorted(table.options)]
    return "\n".join(["| option | meaning |", "|---|---|", *rows, ""])


def _leaves(command: ArgumentParser) -> Iterator[ArgumentParser]:
    nested = [action for action in command._actions if isinstance(action, _SubParsersAction)]
    if not nested:
        yield command
    for action in nested:
        for child in action.choices.values():
            yield from _leaves(child)


def _command(command: ArgumentParser) -> str:
    rows = [f"| `{_names(action)}` | {_cell(action.help or '')} |" for action in command._actions if _is_own(action)]
    return "\n".join(
        [f"### {command.prog}\n", f"{command.description or ''}\n", "| argument | meaning |", "|---|---|", *rows, ""]
    )


def _is_own(action: Action) -> bool:
    return action.help is not SUPPRESS and action.dest != "help"


def _names(action: Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    if not metavar and action.choices:
        metavar = "|".join(map(str, action.choices))
    if not action.option_strings:
        return f"{metavar} …" if action.nargs in ("*", "+") else metavar
    name = ", ".join(action.option_strings)
    return name if action.nargs == 0 else f"{name} {metavar}".rstrip().replace("|", " or ")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    TARGET.write_text(document())
    print(f"wrote {TARGET.name}")
