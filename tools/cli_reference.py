"""Writes docs/cli.md, the reference of the command lines, from the tables that they read their options with."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, _SubParsersAction
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path

from groupkeeper.cli import check, context, transactions
from groupkeeper.cli.dropin.consumer_groups_options import TABLE as CONSUMER_GROUPS
from groupkeeper.cli.dropin.kafka_consumer_group_reset import TABLE as GROUP_RESET
from groupkeeper.cli.dropin.kafka_get_offsets import TABLE as GET_OFFSETS
from groupkeeper.cli.dropin.kafka_groups import TABLE as GROUPS
from groupkeeper.cli.dropin.options import OptionTable, described, signature
from groupkeeper.cli.dropin.share_groups_options import TABLE as SHARE_GROUPS
from groupkeeper.cli.dropin.streams_groups_options import TABLE as STREAMS_GROUPS
from groupkeeper.cli.framework.commands import parser
from groupkeeper.cli.framework.reports import Column, Schema
from groupkeeper.cli.groups import schemas as groups_schemas
from groupkeeper.cli.groups import watch as groups_watch
from groupkeeper.cli.groups import why as groups_why
from groupkeeper.cli.pipeline.forget import FORGOTTEN
from groupkeeper.cli.pipeline.quality import CHECKS as QUALITY_CHECKS
from groupkeeper.cli.plans import schemas as plan_schemas
from groupkeeper.cli.spark import schemas as spark_schemas

TARGET = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
DROP_INS = (CONSUMER_GROUPS, SHARE_GROUPS, STREAMS_GROUPS, GROUPS, GET_OFFSETS)
SETS = {
    "cluster": ("--bootstrap-server", "--context", "--command-config", "--property", "--timeout"),
    "output": ("--output", "--wide", "--color"),
}
"""Options that commands have together have one name."""

INTRODUCTION = """\
# Command lines

Written by `tools/cli_reference.py` from the option tables: `make docs` writes it again.

Two kinds of commands come with the package. The *drop-in* commands have the name, the options, the output and the
exit status of an official tool of Kafka 4.4.0, down to the blanks: scripts keep working. With
`GROUPKEEPER_KAFKA_TOOLS=4.3.1` in the environment they print what the tools of Kafka 4.3.1 do, whichever release the
brokers have; of the options that are new in 4.4 only `--topology` is missing then. `groupkeeper …` does the
same work better: it prints JSON when asked to, shows what failed beside what worked, and exits with 1 when something
failed and with 2 for a wrong usage.
"""

GROUP_RESET_IS_OURS = (
    "The tool of KIP-122's first version, which Kafka never shipped; [plans](plans.md) shows how it is used. Exits "
    "with 0 when the operation was completed, with warnings too, and with 1 otherwise."
)

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

STREAMS_DEFECTS = """\
Exits with 1 when something failed, unlike the other two. Of its habits, `groupkeeper groups` shares none of these:

| `kafka-streams-groups` | `groupkeeper groups` |
|---|---|
| `--describe` shows nothing but the state of a group without members | shows its committed offsets and their lag |
| ends at the first group that cannot be described | shows the others, and the problem beside them |
| `--list --state NotReady` finds no group | finds them |
| `--delete-internal-topic` deletes any topic; `--delete-all-internal-topics` fails without any | leaves topics |

Offsets that it resets or deletes are restored by `groupkeeper undo`; topics that it deletes are not.

To let an application process everything again: end it, reset it, and start it with its local state removed
(`KafkaStreams.cleanUp()`):

    kafka-streams-groups --bootstrap-server localhost:9092 --reset-offsets --group APPLICATION_ID --all-input-topics \\
        --to-earliest --execute --delete-all-internal-topics

An application with `group.protocol=classic`, which was the only one before Kafka 4.1, is a group of consumers: it is
shown and reset by `kafka-consumer-groups`, and its internal topics are deleted by their names.
"""


GROUPKEEPER = """\
## groupkeeper

### Exit status

| status | meaning |
|---|---|
| 0 | everything requested was done |
| 1 | there are problems, each a line on standard error (or in JSON's `problems`); the rest was done and is shown |
| 2 | wrong usage: an option or value that isn't known, a file that cannot be read. No broker was asked anything |
| 3 | of `groupkeeper check`: a limit is broken, whatever else there is |
| 130 | interrupted by Ctrl-C. What was done until then is shown; JSON is closed, with the problem `INTERRUPTED` |

A reader that stops early (`groupkeeper groups list | head`) is no failure. Notes and problems are lines on standard
error, which start with `note: ` or `error: `. After one second without a connection a note says so, and a terminal
shows the progress. Colours are for terminals only: `--color always` writes them anyway, `--color never`
and the environment variable `NO_COLOR` (not empty) nowhere.

### Which cluster

The first of these that is given:

1. `--bootstrap-server`. Contexts then don't matter, unless `--context` is given too: its properties are used with these
   brokers.
2. `--context NAME`.
3. The environment variable `GROUPKEEPER_CONTEXT`.
4. The context chosen by `groupkeeper context use NAME`.

`groups list`, `describe`, `offsets`, `members` and `watch`, `transactions list` and `describe`, `history`, `check` and
`serve` ask several clusters: repeat `--context`, or give it a glob: `--context '*'` stands for all contexts, in the
order of their names. The table then begins with the column CLUSTER. Each cluster is asked by itself: what fails of one
is a problem with its name, and the others' rows are there all the same; clusters that take longer than a second come
after the others. `--sort` and `--top` are about the rows of all of them. A group that is named needs not be in each of
the clusters (but for `check`). `groups watch` says at once which clusters cannot be asked, and begins with each as
soon as it can be.

A context is a file of properties, `contexts/NAME.properties` in the folder `groupkeeper` of `$XDG_CONFIG_HOME`
(default `~/.config`; `%APPDATA%` on Windows): `bootstrap.servers`, perhaps `command.config` (a file with more
properties), and properties of the client by their Kafka names, which win over that file's. `--command-config` wins
over both. Only its owner may read the file. Other users see a password on a command line, and it stays in the
shell's history: `--secret` asks for it instead, and `context show` masks it. The drop-in commands do not use contexts.

A context can be protected (`context add --protected`, `context protect NAME`). What would change something there
(`groups reset`, `delete`, `delete-offsets`, `transactions abort`, `apply`, `undo`, each with `--execute`) then asks
for the context's name at a terminal, below what would be done, and elsewhere needs `--confirm-context NAME`. That
holds for its brokers by `--bootstrap-server`, too, whatever name they are reached by: the addresses of the context are
compared with the given ones and with those that the brokers have. It keeps mistakes out, not people: brokers decide
by ACLs who may change something.

The options of the cluster and of the output may stand before the command, too (`groupkeeper --context prod groups
list`). Durations are written as `500ms`, `30s`, `2m`, `1h30m` or `7d`, or as in ISO 8601 (`PT2M`, `P7D`).
`--property NAME=VALUE` gives any of these commands a property of the client.

`--timeout` is how long one call to a cluster may take, with all its retries, in each command that asks one, those of
the pipeline included. Without it `default.api.timeout.ms` of the properties counts, else 30s (`serve` and `pipeline
follow`, which ask again and again: 10s). At brokers that are gone or say nothing a command ends after that time with
an error and status 1; `serve` and `pipeline follow` say so and go on. Ctrl-C ends a command with status 130, and with
0 those that have no other end (`groups watch`, `serve`, `pipeline follow`, `broker`).

### Which groups and topics

`GROUP` and `--topic` are names, or globs: `*` is any text, `?` one character, `[abc]` one of these, and `[*]` the
character `*` itself. Put globs in quotes, or the shell takes them for files. With `--regex` they are regular
expressions (Python's), for the whole name. A glob that is the name of a group itself, as `app[1]`, means that group.
Put names that start with `-` after `--`. An unknown name is an error, a pattern without a match is a note. `--state`
and `--type` choose among the groups that the cluster lists.
Commands that plan or make changes take classic and consumer groups by patterns; a streams group is named for them
and deleted with `kafka-streams-groups`, and share groups are changed with `kafka-share-groups`.

What you may not see is an error that names the missing ACL, beside everything else. Brokers silently leave out some
things: groups that you may not describe, unless an ACL allows you to describe the cluster (a note says so), and in a
group's offsets the topics that you may not describe (name them with `--topic` to see the error).

### Output

`--output json` is always one JSON object, also when no broker can be reached: `schema` (the kind of the rows and its
version, such as `offsets/1`), the rows under the name of their kind, `notes` (texts) and `problems`. Every row has
every key; absent values are `null`. `--output csv` has the same columns under the same names, without notes and
problems, which then go to standard error: a line of names first, absent values empty, partitions as
`orders:0,1;payments:2`. Within a version columns are only added, at the end. Tables are for people and can change;
they are as wide as the terminal, in a pipe 100 columns: what would make them wider is left out, first what has no
value. Names that are still too long are cut in their middle at a terminal, and whole in a pipe; a note says that texts
are cut. `--wide` shows all columns and whole texts. What isn't printable is escaped.
Rows are written as they are known, except with `--sort`.

A problem has `error`, a name in capitals: of Kafka's error codes (`GROUP_ID_NOT_FOUND`) where a broker refused, and
otherwise our own (`CONNECTION_FAILED`, `CALL_TIMED_OUT`, `GROUP_IS_ACTIVE`, `NO_PLAN`, ...); `message`, for people;
`group`, `topic`, `partition` and `broker`, its subject, each `null` where it isn't about one; `acl`, the
permission that is missing, `null` where none is: `operation`, `resource_type`, and `name`, which is `null` where the
broker doesn't say which topic of the group it is; and `cluster`, its name where a command asks several.
"""


def _meanings(column: str, meanings: Mapping[str, str]) -> str:
    rows = (f"| `{value}` | {meaning} |" for value, meaning in meanings.items())
    return "\n".join([f"| `{column}` | meaning |", "|---|---|", *rows])


STATUSES = _meanings("status", groups_schemas.STATUSES)

EXECUTED = "JSON has `executed` too: `true` when the rows are done, `false` when they only show what would be."

SCHEMAS = (
    ("groups list", groups_schemas.GROUPS, ""),
    ("groups describe, groups offsets", groups_schemas.OFFSETS, STATUSES),
    ("... --sum group", groups_schemas.GROUP_SUMS, ""),
    ("... --sum topic", groups_schemas.TOPIC_SUMS, ""),
    ("groups members, groups describe --view members", groups_schemas.MEMBERS, ""),
    ("groups describe --view state", groups_schemas.STATES, ""),
    (
        "groups describe --view topology",
        groups_schemas.TOPOLOGY,
        "Brokers from Kafka 4.4 on keep the topologies of streams groups, when they have a plugin for them.",
    ),
    (
        "groups watch",
        groups_watch.CHANGES,
        (
            "It ends with Ctrl-C or SIGTERM, also in the background, and status 0. While no group can be described it "
            "says so on standard error, and retries with pauses of up to 10 s. JSON has an object for each change, on "
            "a line of its own, `schema` among its keys."
        ),
    ),
    (
        "groups why",
        groups_why.CAUSES,
        "JSON has `group` and `cause` too: that of the first row, null where the group moves or nothing waits.\n\n"
        + _meanings("cause", groups_why.MEANINGS),
    ),
    ("groups reset", groups_schemas.NEW_OFFSETS, EXECUTED),
    ("groups delete-offsets", groups_schemas.DELETED_OFFSETS, EXECUTED),
    ("groups delete", groups_schemas.DELETED_GROUPS, EXECUTED),
    ("transactions list", transactions.TRANSACTIONS, _meanings("standing", transactions.STANDINGS)),
    ("transactions describe", transactions.PARTITIONS, ""),
    ("transactions abort", transactions.ABORTED, EXECUTED),
    ("plan reset", plan_schemas.CHANGES, ""),
    ("apply, undo", plan_schemas.OUTCOMES, EXECUTED),
    ("history", plan_schemas.HISTORY, ""),
    ("history ID", plan_schemas.RECORDED, ""),
    ("check", check.CHECKS, ""),
    ("pipeline quality", QUALITY_CHECKS, ""),
    ("pipeline forget", FORGOTTEN, EXECUTED),
    ("spark lag", spark_schemas.QUERIES_LAG, ""),
    ("spark starting-offsets --output json", spark_schemas.STARTING_OFFSETS, ""),
    ("context list", context.CONTEXTS, ""),
    ("context show", context.PROPERTIES, ""),
)


def document() -> str:
    """The whole reference."""
    options = _common_options((*DROP_INS, GROUP_RESET))
    parts = [INTRODUCTION, f"## Options of drop-ins\n\n{_table('option', options)}"]
    for table in DROP_INS:
        parts.append(f"## {table.tool}\n\n{table.summary}\n\n{_options(table, frozenset(options))}")
        if table is CONSUMER_GROUPS:
            parts.append(DEFECTS)
        if table is STREAMS_GROUPS:
            parts.append(STREAMS_DEFECTS)
    head = f"## {GROUP_RESET.tool}\n\n{GROUP_RESET.summary} {GROUP_RESET_IS_OURS}"
    parts.append(f"{head}\n\n{_options(GROUP_RESET, frozenset(options))}")
    columns = _common_columns([schema for _, schema, _ in SCHEMAS])
    parts += [GROUPKEEPER, f"What these columns mean, where nothing else is said:\n\n{_table('column', columns)}"]
    parts += _schemas(frozenset(columns))
    commands = list(leaves(parser()))
    shared = _shared_rows(commands)
    parts.append(_shared(shared))
    parts += [_command(command, shared) for command in commands]
    return "\n".join(parts)


def _schemas(common: Set[str]) -> Iterator[str]:
    told: dict[tuple[str, ...], str] = {}
    for command, schema, more in SCHEMAS:
        own = tuple(row for row in map(_column, filter(_meaning, schema.columns)) if row not in common)
        parts = [f"`{command}`: rows under `{schema.kind}`, schema `{schema.name}`\n"]
        if len(own) < len(schema.columns):
            parts.append(f"In this order: {', '.join(f'`{column.name}`' for column in schema.columns)}.\n")
        if own in told:
            parts.append(f"They mean the same as in `{told[own]}`.\n")
        elif own:
            parts.append(_table("column", own))
            told[own] = command
        yield "\n".join([*parts, *([f"{more}\n"] if more else [])])


def _meaning(column: Column) -> str:
    """Empty where the name says it all."""
    return column.meaning


def _column(column: Column) -> str:
    return f"| `{column.name}` | {_cell(column.meaning)} |"


def _common_columns(schemas: Sequence[Schema]) -> list[str]:
    """The rows of columns that mean the same in `SHARED` kinds of rows or more."""
    counts = Counter(_column(column) for schema in schemas for column in filter(_meaning, schema.columns))
    return sorted(row for row, count in counts.items() if count >= SHARED)


def _options(table: OptionTable, common: Set[str]) -> str:
    rows = _option_rows(table)
    others = ", ".join(f"`--{name}`" for name, row in rows.items() if row in common)
    return (
        _table("option", [row for row in rows.values() if row not in common])
        + f"\n[Common](#options-of-drop-ins): {others}\n"
    )


def _option_rows(table: OptionTable) -> dict[str, str]:
    return {name: f"| `{signature(table[name])}` | {_cell(described(table[name]))} |" for name in sorted(table.options)}


def _common_options(tables: Sequence[OptionTable]) -> list[str]:
    """The rows of options that are the same in several drop-ins."""
    counts = Counter(row for table in tables for row in _option_rows(table).values())
    return sorted(row for row, count in counts.items() if count > 1)


def _table(first: str, rows: Iterable[str]) -> str:
    return "\n".join([f"| {first} | meaning |", "|---|---|", *rows, ""])


def leaves(command: ArgumentParser) -> Iterator[ArgumentParser]:
    """Commands that have no commands of their own."""
    nested = [action for action in command._actions if isinstance(action, _SubParsersAction)]
    if not nested:
        yield command
    for action in nested:
        for child in action.choices.values():
            yield from leaves(child)


SHARED = 3
"""An option that reads the same in so many commands is explained once."""


def _rows(command: ArgumentParser) -> dict[str, str]:
    """The arguments of a command, as rows by their names."""
    own = {_names(action): action for action in command._actions if _is_own(action)}
    return {name: f"| `{name}` | {_cell(action.help or '')} |" for name, action in own.items()}


def _shared_rows(commands: Sequence[ArgumentParser]) -> dict[str, str]:
    """The rows that `SHARED` commands or more have, with their option's name. Where several are of one option, those
    but the most common one have a number, too: `--context` (2).
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for command in commands:
        for name, row in _rows(command).items():
            counts[name.split(" ")[0].rstrip(",")][row] += 1
    shared: dict[str, str] = {}
    for name, of_option in counts.items():
        rows = [row for row, count in of_option.most_common() if count >= SHARED]
        shared |= {row: f"`{name}`" + (f" ({number})" if number > 1 else "") for number, row in enumerate(rows, 1)}
    return shared


def _shared(shared: Mapping[str, str]) -> str:
    rows = [row.replace("` |", f"`{name[name.index('`', 1) + 1 :]} |", 1) for row, name in shared.items()]
    sets = ". ".join(f"*{name}* stands for {', '.join(f'`{option}`' for option in SETS[name])}" for name in SETS)
    text = (
        f"Every command has `--debug`. {sets}. A number tells options apart that mean something else in some commands."
    )
    return f"### Shared options\n\n{text}\n\n{_table('argument', sorted(rows))}"


def _command(command: ArgumentParser, shared: Mapping[str, str]) -> str:
    rows = _rows(command).values()
    own = [row for row in rows if row not in shared]
    others = [shared[row] for row in rows if row in shared and shared[row] != "`--debug`"]
    parts = [f"### {command.prog}\n", f"{command.description or ''}\n"]
    if own:
        parts.append(_table("argument", own))
    if others:
        parts.append(f"[Shared](#shared-options): {', '.join(_by_sets(others))}\n")
    return "\n".join(parts)


def _by_sets(names: Sequence[str]) -> list[str]:
    sets = {name: {f"`{option}`" for option in options} for name, options in SETS.items()}
    whole = [name for name, options in sets.items() if options <= set(names)]
    named = {option for name in whole for option in sets[name]}
    return [*(name for name in names if name not in named), *(f"*{name}*" for name in whole)]


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
