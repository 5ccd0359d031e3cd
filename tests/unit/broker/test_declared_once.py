"""A setting is declared in one place; everything else follows (docs/design/broker.md)."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from zlib import crc32

import pytest

from groupkeeper.broker.settings.catalog import listed_names
from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.described import describe_broker
from groupkeeper.broker.settings.group_overrides import GroupConfig
from groupkeeper.broker.settings.group_settings import BOUNDED, FAMILIES, declarations
from groupkeeper.broker.settings.kafka import KEPT_AS_TEXT
from groupkeeper.broker.settings.table import ACCEPTED
from groupkeeper.broker.settings.topic import TopicConfig
from groupkeeper.coordinator.kernel.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "src/groupkeeper"
OF_BROKERS, OF_GROUPS, TYPES = 350, 21, 2905911158
"""How many settings of brokers and of a group Apache Kafka 4.4.0 describes, and the CRC-32 of the names of all, with
their types: those of brokers in its order, then those of topics and groups.
"""
UNBOUNDED = {"initial.rebalance.delay.ms", "num.standby.replicas", "num.warmup.replicas", "task.offset.interval.ms"}
UNBOUNDED |= {"acceptable.recovery.lag"}
"""Numbers of streams groups to which Apache Kafka has no bounds, or only one (`_bounds` of group_overrides.py)."""
DECLARED = 'group_share_made_up_ms: int = setting(7_000, "Made up by a test.", low=10, high=90_000, is_of_group=True)'
ELSEWHERE = f"""
import sys
import types
from importlib.util import find_spec
from pathlib import Path

NAME = "groupkeeper.coordinator.kernel.settings"
source = Path(find_spec(NAME).origin).read_text()
place = "    group_streams_session_timeout_ms: int"
assert source.count(place) == 1
module = sys.modules[NAME] = types.ModuleType(NAME)
exec(source.replace(place, '    {DECLARED}' + chr(10) + place), module.__dict__)

from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.described import describe_broker, describe_group
from groupkeeper.broker.settings.group_overrides import GroupConfig
from groupkeeper.broker.settings.group_settings import coordinator_settings
from groupkeeper.base_error import InvalidSetting
from groupkeeper.coordinator.coordinator import Coordinator
from tools.broker_settings import document

lines = [line for line in document().splitlines() if "Made up by a test." in line]
assert lines == ["| `group.share.made.up.ms` | int | `7000` | 10 to 90000 | Made up by a test. |"], lines
assert ", `share.made.up.ms`, " in document()

config = Config.from_texts({{"group.share.made.up.ms": "8000"}})
described = {{one.name: one for one in describe_broker(config)}}
row = described["group.share.made.up.ms"]
assert (row.value, row.doc) == ("8000", "Made up by a test.")
for wrong in ("9", "90001", "x"):
    try:
        Config.from_texts({{"group.share.made.up.ms": wrong}})
    except InvalidSetting:
        continue
    raise AssertionError(wrong)

group = GroupConfig({{"share.made.up.ms": "9000"}}, config, is_new=True)
described = {{one.name: one for one in describe_group(group, config)}}
assert [value for _, value, _ in described["share.made.up.ms"].synonyms] == ["9000", "8000", "7000"]

coordinator = Coordinator(coordinator_settings(config))
assert coordinator.settings_of("any").group_share_made_up_ms == 8000
coordinator.apply(module.SettingsChange({{"own": group.effective}}))
assert coordinator.settings_of("own").group_share_made_up_ms == 9000
"""


IN_BROKER = 'made_up_ms = long(7_000, low=10, doc="Made up by a test.").in_kafka(ANY)'
IN_TOPIC = 'made_up_ms = long(5, low=1, doc="Made up for topics.").default_of("made.up.ms")'
OF_BROKER = f"""
import sys
import tempfile
from pathlib import Path

from tests.simulation.mutation import SourceFinder

import groupkeeper


def declare(name, place, declaration):
    file = Path(groupkeeper.__file__).parents[1].joinpath(*name.split(".")).with_suffix(".py")
    source = file.read_text()
    assert source.count(place) == 1
    sys.meta_path.insert(0, SourceFinder(name, file, source.replace(place, "    " + declaration + chr(10) + place)))


declare("groupkeeper.broker.settings.config", "    num_partitions = ", {IN_BROKER!r})
declare("groupkeeper.broker.settings.topic", "    compression_lz4_level = ", {IN_TOPIC!r})

from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.described import describe_broker, describe_topic
from groupkeeper.broker.settings.dynamic import ALL_BROKERS, DynamicConfig
from groupkeeper.broker.settings.order import in_java_order
from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.settings.topic import TopicConfig
from groupkeeper.broker.storage.directory import StorageDirectory
from tools.broker_settings import document

lines = [line for line in document().splitlines() if "Made up" in line]
assert lines == [
    "| `made.up.ms` | long | `7000` | at least 10 | Made up by a test. |",
    "| `made.up.ms` | long | `5` | at least 1 | Made up for topics. |",
], lines

config = Config.from_texts({{"made.up.ms": "8000"}})
assert config.unknown == ()
described = {{one.name: one for one in describe_broker(config)}}
row = described["made.up.ms"]
assert (row.value, row.type, row.doc, row.is_read_only) == ("8000", "long", "Made up by a test.", False)
among = ["log.cleaner.backoff.ms", "made.up.ms", "num.partitions"]
assert [name for name in described if name in among] == in_java_order(among, len(described))

with tempfile.TemporaryDirectory() as folder:
    directory = StorageDirectory(folder, 1)
    changing = DynamicConfig(directory, config)
    kept = dict(config.changed[ALL_BROKERS])
    for wrong in ("9", "x"):
        try:
            changing.configure(ALL_BROKERS, kept | {{"made.up.ms": wrong}})
        except InvalidSetting:
            continue
        raise AssertionError(wrong)
    changing.configure(ALL_BROKERS, kept | {{"made.up.ms": "9000"}})
    directory.close()
assert config.made_up_ms == 9000

topic = TopicConfig({{"made.up.ms": "3"}}, config)
described = {{one.name: one for one in describe_topic(topic, config)}}
assert [value for _, value, _ in described["made.up.ms"].synonyms] == ["3", "9000", "8000", "7000"]
assert (topic.made_up_ms, TopicConfig({{}}, config).made_up_ms) == (3, 9000)
"""


@pytest.mark.parametrize("program", [ELSEWHERE, OF_BROKER], ids=["of groups", "of brokers and topics"])
def test_a_new_setting_is_found_everywhere(program: str) -> None:
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_settings_are_in_kafkas_order_and_of_its_types() -> None:
    """Those of Apache Kafka 4.4.0's DescribeConfigs, whole; differential/broker/test_configs.py asks Kafka itself."""
    names, types = listed_names(), {one.name: one.type for one in describe_broker(Config())}
    of_groups = [one for one in GroupConfig.settings() if one.is_listed]
    others = [one for one in (*TopicConfig.settings(), *of_groups) if one.is_listed]
    told = [*((name, types[name]) for name in names), *sorted((one.name, one.type) for one in others)]
    found = len(names), len(of_groups), crc32(repr(told).encode())
    assert found == (OF_BROKERS, OF_GROUPS, TYPES), (
        "the settings are not those of before. If Kafka has the new one, set OF_BROKERS, OF_GROUPS, TYPES "
        f"in this file to {found}. If it has not: its name begins with `groupkeeper.`, or it is declared with "
        "is_listed=False (CONTRIBUTING.md, 'To add a setting of the broker')"
    )


def test_every_setting_is_read() -> None:
    """Its attribute is somewhere in the sources, or its name as a text: as a bound, or as the default of another."""
    text = "".join(path.read_text() for path in SOURCES.rglob("*.py"))
    used = set(re.findall(r"\.(\w+)", text)) | {one.replace(".", "_") for one in re.findall(r'"([a-z0-9.]+)"', text)}
    used |= {f"group.{family}.{bound}.{name}".replace(".", "_") for family, name in BOUNDED for bound in ("min", "max")}
    of_coordinators = {declaration.given_as or field: field for field, declaration, _ in declarations()}
    unread = {one.name for one in fields(Settings) if one.name not in used}
    for table, prefix in ((Config, ""), (TopicConfig, ""), (GroupConfig, "group_")):
        for setting in table.settings():
            name = of_coordinators.get(prefix + setting.attribute, setting.attribute)
            if name not in used and setting.has_effect:
                unread.add(setting.name)
    assert unread == set(), (
        "no code reads these settings: read them where they matter, or, if it is the lowest or highest value of a "
        "group's setting, add that to BOUNDED in broker/settings/group_settings.py; a text that begins with "
        f"{ACCEPTED!r} says that a setting has no effect (CONTRIBUTING.md, 'To add a setting of the broker')"
    )


def test_every_setting_is_named_in_a_test() -> None:
    """By its name or its attribute. Tables test bounds, defaults of topics, and a group's value beside the broker's."""
    of_no_rule = "unit/coordinator/test_consumer_groups.py"
    skipped = {ROOT / "tests" / name for name in ("conformance", "differential", "docs/released.txt", of_no_rule)}
    files = [path for path in (ROOT / "tests").rglob("*") if path.suffix in (".py", ".txt")]
    text = "\n".join(path.read_text() for path in files if skipped.isdisjoint((path, *path.parents)))
    named = {one.strip(".") for one in re.findall(r"[\w.]+", text)}
    named |= {part for one in named for part in one.split(".")}
    in_tables = {one.broker_name for one in TopicConfig.settings()}
    in_tables |= {f"group.{family}.{bound}.{name}" for family, name in BOUNDED for bound in ("min", "max")}
    in_tables |= {one.name for one in GroupConfig.settings() if Config.setting(f"group.{one.name}")}
    settings = [one for table in (Config, TopicConfig, GroupConfig) for one in table.settings() if one.has_effect]
    untested = [one.name for one in settings if not {one.name, one.attribute} & named and one.name not in in_tables]
    assert untested == [], (
        "no test names these settings: test that each has its effect, so that a client sees, or the log holds, "
        "something else than by its default (CONTRIBUTING.md, 'To add a setting of the broker')"
    )


def test_the_groups_own_value_is_read() -> None:
    names = {name for name, declaration, _ in declarations() if declaration.is_of_group}
    names |= {f"group_{family}_assignor_offload_enable" for family in FAMILIES}
    others = re.compile(rf"\S*(?<!\.effective)\s*\.({'|'.join(names)})\b")
    for path in (SOURCES / "broker").rglob("*.py"):
        found = others.search(re.sub(r"\s+\.", ".", path.read_text()))
        assert found is None, (
            f"{path.relative_to(ROOT)}: {found and found[0]} is the value of no group, but groups may have their own: "
            "read broker.group_configs.at(group_id, node).effective (CONTRIBUTING.md, 'To add a setting of the broker')"
        )


def test_numbers_of_groups_have_bounds() -> None:
    own = [(field.split("_", 2), one) for field, declaration, one in declarations() if declaration.is_of_group]
    numbers = {(family, name.replace("_", ".")) for (_, family, name), one in own if isinstance(one.default, int)}
    missing = numbers - {*BOUNDED} - {("streams", name) for name in UNBOUNDED}
    assert not missing, f"BOUNDED and GroupSettings of broker/settings/group_settings.py lack bounds of {missing}"
    names = [f"group.{family}.{bound}{name}" for family, name in BOUNDED for bound in ("", "min.", "max.")]
    without = [name for name in names if getattr(Config.setting(name), "low", None) is None]
    assert not without, f"declare these with low=, as their values begin there (below: refused): {', '.join(without)}"


def test_groups_have_the_settings_between_bounds() -> None:
    """A group's value is compared with them. That the bounds go as far as the broker's values: `test_config.py`."""
    of_groups = {one.name for one in GroupConfig.settings()}
    for family, name in BOUNDED:
        assert f"{family}.{name}" in of_groups, (
            f"BOUNDED has {family}.{name}, which no group can have: its declaration in coordinator/kernel/settings.py "
            "lacks is_of_group=True"
        )


def test_settings_without_an_effect_say_so() -> None:
    """Where the broker works, not where settings are declared, they are not read; and those of topics with one are."""
    files = [path for folder in ("broker", "coordinator", "security") for path in (SOURCES / folder).rglob("*.py")]
    text = "".join(path.read_text() for path in files if path.parent.name != "settings")
    read, quoted = set(re.findall(r"\.(\w+)", text)), set(re.findall(r'"([a-z0-9.]+)"', text))
    tables = (Config, TopicConfig, GroupConfig)
    idle = {one.attribute for table in tables for one in table.settings() if not one.has_effect}
    assert idle & read == set()
    assert {name for name in KEPT_AS_TEXT.keys() & quoted if KEPT_AS_TEXT[name].doc.startswith(ACCEPTED)} == {
        "ssl.protocol"  # it is only checked
    }
    indirect = {"segment_bytes", "internal_segment_bytes"}  # by `roll_bytes`
    assert {one.attribute for one in TopicConfig.settings() if one.has_effect} - read == indirect


def test_no_setting_is_declared_twice() -> None:
    assert {name for name in KEPT_AS_TEXT if Config.setting(name) is not None} == set()
