from math import inf
from typing import Any

import pytest

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.network.listeners import Endpoint, Listener, advertised_of, given_port, listeners_of
from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.group_overrides import GroupConfig, OffsetReset
from groupkeeper.broker.settings.group_settings import BOUNDED, declarations
from groupkeeper.broker.settings.table import Setting, property_text
from groupkeeper.broker.settings.topic import SYNONYM_BY_SETTING, TopicConfig


def config(**given: str) -> Config:
    return Config.from_texts({name.replace("_", "."): value for name, value in given.items()})


def test_defaults_are_kafkas() -> None:
    plain = config()
    assert plain.num_partitions == 1
    assert plain.auto_create_topics_enable is True
    assert plain.offsets_topic_num_partitions == 50
    assert plain.group_initial_rebalance_delay_ms == 3000
    assert plain.group_consumer_assignors == ("uniform", "range")
    assert plain.retention_ms == 604_800_000


def test_texts_become_values() -> None:
    given = config(
        num_partitions=" 3 ", auto_create_topics_enable="FALSE", log_dirs="/a, /b", log_retention_minutes="2"
    )
    assert given.num_partitions == 3
    assert given.auto_create_topics_enable is False
    assert given.storage_path == "/a"
    assert given.retention_ms == 120_000
    assert config(log_dir="/c").storage_path == "/c"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num.partitions": "x"}, "Invalid value x for configuration num.partitions: Not a number of type INT"),
        ({"num.partitions": "0"}, "num.partitions: Value must be at least 1"),
        ({"num.partitions": "2147483648"}, "Not a number of type INT"),
        ({"offsets.topic.compression.codec": "5"}, "Value must be no more than 4"),
        ({"auto.create.topics.enable": "yes"}, "Expected value to be either true or false"),
        ({"compression.type": "rar"}, "String must be one of"),
        ({"feature.group.version": "one"}, "feature.group.version"),
        ({"group.consumer.migration.policy": "sideways"}, "group.consumer.migration.policy"),
    ],
)
def test_a_bad_value_is_refused_by_name(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        Config.from_texts(given)


# GF-01
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"group.consumer.heartbeat.interval.ms": "45000", "group.consumer.max.heartbeat.interval.ms": "45000"},
            "group.consumer.heartbeat.interval.ms must be less than group.consumer.session.timeout.ms",
        ),
        (
            {"group.consumer.session.timeout.ms": "1000"},
            "group.consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            {"group.share.session.timeout.ms": "70000"},
            "group.share.session.timeout.ms must be less than or equal to group.share.max.session.timeout.ms",
        ),
        (
            {"group.consumer.max.assignment.interval.ms": "1", "group.consumer.min.assignment.interval.ms": "2"},
            "group.consumer.max.assignment.interval.ms must be greater than or equal to group.consumer.min.assignment",
        ),
        ({"group.share.max.share.sessions": "5"}, "group.share.max.share.sessions .* group.share.max.size"),
        ({"group.consumer.assignors": "range,range"}, "group.consumer.assignors"),
        ({"group.share.assignors": "simple,other"}, "group.share.assignors"),
    ],
)
def test_relations_name_both_keys(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        Config.from_texts(given)


def limits(name: str) -> tuple[float, float]:
    """The lowest and highest value that a setting of the broker can have by itself."""
    setting = Config.setting(name)
    assert setting is not None, f"{name} is no attribute of GroupSettings (broker/settings/group_settings.py)"
    return (-inf if setting.low is None else setting.low), (inf if setting.high is None else setting.high)


@pytest.mark.parametrize(("family", "name"), BOUNDED)
def test_the_documented_limits_can_be_reached(family: str, name: str) -> None:
    """A value is also refused outside of `group.FAMILY.min.NAME` and `group.FAMILY.max.NAME`: they must go as far."""
    lowest, highest = limits(f"group.{family}.{name}")
    least, most = f"group.{family}.min.{name}", f"group.{family}.max.{name}"
    assert limits(least)[0] <= lowest, f"`low` of {least} is above that of the setting itself"
    assert limits(most)[1] >= highest, f"`high` of {most} is below that of the setting itself, which may have none"


def test_a_groups_own_setting_has_an_upper_limit_where_the_brokers_has() -> None:
    limited = {setting.name for setting in Config.settings() if setting.high is not None}
    of_groups = {f"group.{setting.name}" for setting in GroupConfig.settings()}
    without = limited & of_groups - {f"group.{family}.{name}" for family, name in BOUNDED}
    assert without == set(), "a line for each in BOUNDED of broker/settings/group_settings.py, with its two attributes"


def test_unknown_names_are_kept_and_foreign_ones_accepted() -> None:
    given = config(num_partitons="3", num_io_threads="8", ssl_protocol="TLS", conformance_spare_port="1")
    assert given.unknown == ("num.partitons",)


def test_features_and_the_old_name_of_the_node_id() -> None:
    given = config(feature_group_version="0", broker_id="7")
    assert given.features == {"group.version": 0}
    assert given.node_id == 7


class TestListeners:
    def test_advertised_addresses(self) -> None:
        given = config(listeners="A://h:0,PLAINTEXT://[::1]:5", listener_security_protocol_map="A:PLAINTEXT")
        bound = {one.name: one for one in listeners_of(given)}
        bound["A"] = bound["A"]._replace(port=77)
        found = advertised_of(given, bound, Endpoint(1, "", 0))
        assert found == {"A": Endpoint(1, "h", 77), "PLAINTEXT": Endpoint(1, "::1", 5)}

    def test_advertised_listeners_win(self) -> None:
        given = config(advertised_listeners="PLAINTEXT://outside:99")
        bound = {"PLAINTEXT": Listener("PLAINTEXT", "", 9092)}
        assert advertised_of(given, bound, Endpoint(3, "", 0)) == {"PLAINTEXT": Endpoint(3, "outside", 99)}

    def test_an_advertised_address_can_be_reached(self) -> None:
        given = config(advertised_listeners="PLAINTEXT://0.0.0.0:99")
        with pytest.raises(InvalidSetting, match=r"clients cannot reach PLAINTEXT://0\.0\.0\.0:99"):
            advertised_of(given, {"PLAINTEXT": Listener("PLAINTEXT", "", 9092)}, Endpoint(3, "", 0))

    @pytest.mark.parametrize(
        ("given", "listeners", "advertised"),
        [
            ({}, "PLAINTEXT://127.0.0.1:7", None),
            ({"listeners": "CONTROLLER://h:1"}, "PLAINTEXT://127.0.0.1:7", None),
            ({"listeners": "CONTROLLER://h:1,A://[::1]:2,B://h:3"}, "A://[::1]:7", None),
            ({"listeners": "C://h:1,A://h:2", "controller.listener.names": "D,C"}, "A://h:7", None),
            (
                {"listeners": "A://:2,B://h:3", "advertised.listeners": "B://other:3,a://outside:2"},
                "A://:7",
                "A://outside:7",
            ),
        ],
    )
    def test_a_port_of_its_own(self, given: dict[str, str], listeners: str, advertised: str | None) -> None:
        others = {"num.partitions": "3", "controller.listener.names": "CONTROLLER"}
        changed = given_port({**others, **given}, 7)
        assert changed.pop("listeners") == listeners
        assert changed.pop("advertised.listeners", None) == advertised
        assert changed.keys() == others.keys()

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"listeners": "nonsense"}, "Unable to parse nonsense"),
            ({"listeners": "PLAINTEXT://h:99999"}, "Unable to parse"),
            ({"listeners": "FOO://h:1"}, "No security protocol defined for listener FOO"),
            ({"listeners": "CONTROLLER://h:1"}, "names no listener to open"),
            ({"listeners": "C://h:1", "controller.listener.names": "C"}, "names no listener to open"),
            ({"listeners": "PLAINTEXT://h:1,PLAINTEXT://h:2"}, "twice"),
        ],
    )
    def test_refusals(self, given: dict[str, str], message: str) -> None:
        with pytest.raises(InvalidSetting, match=message):
            listeners_of(Config.from_texts(given))


class TestTopicConfig:
    def test_overrides_win(self) -> None:
        own = TopicConfig({"cleanup.policy": "compact,delete", "retention.ms": "-1"}, config())
        assert own.cleanup_policy == ("compact", "delete")
        assert own.retention_ms == -1
        assert own.overrides == {"cleanup.policy": "compact,delete", "retention.ms": "-1"}

    @pytest.mark.parametrize("name", SYNONYM_BY_SETTING)
    def test_the_brokers_value_is_the_default(self, name: str) -> None:
        own, setting = TopicConfig.setting(name), Config.setting(SYNONYM_BY_SETTING[name])
        assert own is not None
        assert setting is not None
        broker = Config.from_texts({setting.name: another(setting)})
        assert getattr(TopicConfig({}, broker), own.attribute) == setting.parse(another(setting)) != own.default

    def test_hours_of_the_broker(self) -> None:
        own = TopicConfig({}, config(log_roll_hours="2", log_roll_jitter_hours="1", log_retention_hours="3"))
        assert (own.segment_ms, own.segment_jitter_ms, own.retention_ms) == (7_200_000, 3_600_000, 10_800_000)


@pytest.mark.parametrize("field", [field for field, one, _ in declarations() if one.is_of_group])
def test_coordinators_have_a_groups_own_value(field: str) -> None:
    own: Any = GroupConfig.setting(field.removeprefix("group_").replace("_", "."))
    text = str(own.default + 1) if isinstance(own.default, int) else "a"
    effective = GroupConfig({own.name: text}, config(), is_new=True).effective
    assert getattr(effective, field) == own.parse(text) != own.default


def another(setting: Setting[object]) -> str:
    """A value that is not the default."""
    default = setting.default
    if isinstance(default, bool):
        return str(not default)
    if setting.choices:
        known = default if isinstance(default, tuple) else (default,)
        return next(one for one in setting.choices if one not in known)
    low = max(int(setting.low or 0), 1)
    return str(low + (low == default))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("latest", OffsetReset("latest")),
        ("earliest", OffsetReset("earliest")),
        ("by_duration:P1D", OffsetReset("by_duration", 86_400_000)),
        ("by_duration:pt1h2m3.0459s", OffsetReset("by_duration", 3_723_045)),
        ("by_duration:PT+0S", OffsetReset("by_duration", 0)),
    ],
)
def test_where_share_partitions_begin(text: str, expected: OffsetReset) -> None:
    assert GroupConfig({"share.auto.offset.reset": text}, config()).offset_reset == expected  # GF-02


@pytest.mark.parametrize("duration", ["", "P", "PT", "P1H", "PT-1S", "1", "P 1D", "PT1S1M", "P1DT"])
def test_durations_that_are_none(duration: str) -> None:
    with pytest.raises(InvalidSetting, match="by_duration:<PnDTnHnMn"):
        GroupConfig({"share.auto.offset.reset": f"by_duration:{duration}"}, config())


def test_every_setting_has_a_text_and_a_default_within_its_bounds() -> None:
    for table in (Config, TopicConfig, GroupConfig):
        for setting in table.settings():
            assert setting.doc, setting.name
            text = setting.format(setting.default)
            if text is not None:
                assert setting.parse(text) == setting.default, setting.name


@pytest.mark.parametrize(("given", "text"), [(3, "3"), (False, "false"), ("x", "x"), (0.5, "0.5")])
def test_python_values_are_taken_as_properties(given: object, text: str) -> None:
    assert property_text("any", given) == text


def test_values_without_a_text_are_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"Invalid value \['a'\] for configuration log\.dirs"):
        property_text("log.dirs", ["a"])
