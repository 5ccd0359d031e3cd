"""Writes docs/broker-settings.md from the broker's tables of settings.

Usage: python tools/broker_settings.py      (`make docs`; a test compares)
"""

from collections.abc import Iterable
from pathlib import Path

from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.group_overrides import GroupConfig
from groupkeeper.broker.settings.table import INT_MAX, LONG_MAX, Setting
from groupkeeper.broker.settings.topic import TopicConfig

TARGET = Path(__file__).resolve().parent.parent / "docs" / "broker-settings.md"

INTRODUCTION = """# Settings of the broker

Written by `make docs` from the tables in `src/groupkeeper/broker/settings/`; do not edit.

Names, types, defaults and bounds are Apache Kafka 4.4.0's; names that begin with `groupkeeper.` are our own. A setting
comes from a file (`groupkeeper broker --config server.properties`) or from the command line (`--property name=value`);
the latter wins. Names that Kafka has and that mean nothing to a single process (`num.io.threads`, `ssl.*`, ...) are
accepted in silence; a name that Kafka does not have is named in a warning.
"""

TOPICS = """
## Settings of a topic

Given with CreateTopics; the defaults are the broker's settings above.
"""

GROUPS = """
## Settings of a group

Given with `kafka-configs --alter --entity-type groups`, to groups that exist and to others; in force at once, and they
outlive the group. Without one the broker's setting `group.` with the same name holds, and its bounds
(`group.consumer.min.session.timeout.ms`, ...) limit what may be given.
"""


def shown(value: object, setting: Setting[object]) -> str:
    if value is None:
        return "unset"
    if value in ((), ""):
        return "empty"
    if isinstance(value, int) and value in (INT_MAX, LONG_MAX):
        return f"2^{value.bit_length()} − 1"
    return f"`{setting.format(value)}`"


def bounds(setting: Setting[object]) -> str:
    if setting.choices:
        return ", ".join(setting.choices)
    if setting.low is not None and setting.high is not None:
        return f"{setting.low} to {setting.high}"
    return f"at least {setting.low}" if setting.low is not None else ""


def table(settings: Iterable[Setting[object]]) -> list[str]:
    lines = ["", "| setting | type | default | allowed | meaning |", "|---|---|---|---|---|"]
    for setting in sorted(settings, key=lambda one: one.name):
        meaning = setting.doc.replace("|", "\\|")
        default = shown(setting.default, setting)
        lines.append(f"| `{setting.name}` | {setting.type} | {default} | {bounds(setting)} | {meaning} |")
    return lines


def document() -> str:
    lines = [INTRODUCTION, "## Settings of the broker itself", *table(Config.settings())]
    lines += [TOPICS.rstrip("\n"), *table(TopicConfig.settings())]
    lines += [GROUPS.rstrip("\n"), *table(GroupConfig.settings())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(document())
    print(f"wrote {TARGET.name}")
