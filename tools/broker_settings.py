"""Writes docs/broker-settings.md from the broker's tables of settings.

Usage: python tools/broker_settings.py      (`make docs`; a test compares)
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from groupkeeper.broker.settings.catalog import broker_setting
from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.group_overrides import GroupConfig
from groupkeeper.broker.settings.kafka import KEPT_AS_TEXT
from groupkeeper.broker.settings.table import Setting
from groupkeeper.broker.settings.topic import TopicConfig
from groupkeeper.java_numbers import INT_MAX, LONG_MAX

TARGET = Path(__file__).resolve().parent.parent / "docs" / "broker-settings.md"

INTRODUCTION = """# Settings of the broker

Written by `make docs` from the tables in `src/groupkeeper/broker/settings/`; do not edit.

Names, types, defaults and bounds are Apache Kafka 4.4.0's; names that begin with `groupkeeper.` are our own. A setting
comes from a file (`groupkeeper broker --config server.properties`) or from the command line (`--property name=value`);
the latter wins. Settings that mean nothing to a single process are accepted in silence: see [settings without
effect](#settings-without-effect). A name that Kafka does not have is named in a warning.
"""

TOPICS = """
## Settings of a topic

Given with CreateTopics; the defaults are the broker's settings above.
"""

GROUPS = """
## Settings of a group

Given with `kafka-configs --alter --entity-type groups`, to groups that exist and to others; in force at once, and they
outlive the group. Bounds are settings of the broker (`group.consumer.min.session.timeout.ms`, ...).
"""

IDLE = """
## Settings without effect

These are accepted, checked and described as by Apache Kafka, with its types and defaults, and change nothing here.
Some have an effect on a cluster, on other threads or on remote storage, which this broker does not have. Settings that
Kafka itself does not describe (`server.max.startup.time.ms`, `group.share.persister.class.name`, ...) are accepted in
the same way, unchecked.
The log warns of Java classes of one's own, which cannot run here.
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


def names(title: str, settings: Iterable[Setting[object]]) -> str:
    """A paragraph."""
    return f"{title}: " + ", ".join(f"`{name}`" for name in sorted(one.name for one in settings)) + "."


def of_broker() -> Iterator[Setting[object]]:
    """What a broker can be given, but for numbers that only dynamic updates can give."""
    yield from Config.settings()
    yield from filter(None, map(broker_setting, KEPT_AS_TEXT))


def document() -> str:
    of_idle_topics = {one.broker_name for one in TopicConfig.settings() if not one.has_effect}
    idle = [one for one in of_broker() if not one.has_effect or one.name in of_idle_topics]
    without_effect = {one.name for one in idle}
    lines = [INTRODUCTION, "## Settings of the broker itself"]
    lines += table(one for one in of_broker() if one.name not in without_effect)
    lines += [TOPICS.rstrip("\n"), *table(one for one in TopicConfig.settings() if one.has_effect)]
    of_groups = [one for one in GroupConfig.settings() if one.has_effect]
    same = [one for one in of_groups if (of_all := Config.setting(f"group.{one.name}")) and of_all.doc == one.doc]
    lines += [GROUPS.rstrip("\n"), "", names("In place of the broker's setting `group.` with the same name", same)]
    lines += table(one for one in of_groups if one not in same)
    lines += [IDLE.rstrip("\n"), "", names("Of the broker", idle)]
    for title, of_others in (("topic", TopicConfig), ("group", GroupConfig)):
        lines += ["", names(f"Of a {title}", [one for one in of_others.settings() if not one.has_effect])]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(document())
    print(f"wrote {TARGET.name}")
