"""Results as tables: every call's result is one, nothing is lost, and types are those of the values."""

import inspect
from collections import abc
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import pandas
import pyarrow
import pytest

from groupkeeper import (
    Acl,
    AclFilter,
    AclOperation,
    AclResourceType,
    Admin,
    Batch,
    Broker,
    EntityName,
    GroupState,
    GroupType,
    NewTopic,
    OffsetAndMetadata,
    Position,
    QuotaEntity,
    TopicPartition,
    to_arrow,
    to_pandas,
)
from groupkeeper.api import tables
from groupkeeper.api.admin import GroupLag, GroupLags
from groupkeeper.api.flattening import CommittedRow, LagRow, Layout, rows_of
from groupkeeper.client.admin import streams_types, types
from groupkeeper.client.admin.resources import access_types as access
from groupkeeper.client.admin.resources import types as resources
from groupkeeper.client.admin.resources.types import LogDir, Replica, TransactionListing, TransactionListings
from groupkeeper.client.admin.streams_types import StreamsTask
from groupkeeper.client.admin.types import (
    CommittedOffsets,
    ConsumerGroupDescription,
    FirstRecord,
    GroupListing,
    GroupListings,
    ListedOffset,
    MemberDescription,
    Node,
    TopicDescription,
)
from groupkeeper.errors import GroupIdNotFound, NotLeaderOrFollower, UnknownTopicOrPartition
from groupkeeper.operations.lag import PartitionLag

NODE = Node(1, "a", 9092)
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def table(result: object, row: type | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = to_arrow(result, row).to_pylist()
    return found


def test_keys_values_and_failures() -> None:
    batch = Batch({P0: ListedOffset(5, -1, 3)}, {P1: UnknownTopicOrPartition("gone")})
    assert table(batch) == [
        {"topic": "t", "partition": 0, "offset": 5, "timestamp": -1, "leader_epoch": 3, "error": None},
        {"topic": "t", "partition": 1, "offset": None, "timestamp": None, "leader_epoch": None,
         "error": "UnknownTopicOrPartition: gone"},
    ]  # fmt: skip
    assert to_arrow(batch).schema.field("offset").type == pyarrow.int64()


def test_batches_in_a_batch() -> None:
    done = {P0: OffsetAndMetadata(5, None, "x"), P1: None}
    offsets = Batch({"a": Batch(done, {TopicPartition("u", 0): NotLeaderOrFollower()})}, {"b": GroupIdNotFound("no b")})
    rows = table(offsets)
    assert [(row["group_id"], row["topic"], row["partition"], row["offset"], row["metadata"]) for row in rows] == [
        ("a", "t", 0, 5, "x"),
        ("a", "t", 1, None, None),
        ("a", "u", 0, None, None),
        ("b", None, None, None, None),
    ]
    assert rows[3]["error"] == "GroupIdNotFound: no b"


def test_offsets_by_column() -> None:
    columns = CommittedOffsets((P0, P1), [5, -1], [-1, -1], ["", None], {})
    found = [tuple(row.values()) for row in table(Batch({"a": columns}))]
    assert found == [("a", "t", 0, 5, -1, "", None), ("a", "t", 1, -1, -1, None, None)]


def test_collections_stay_together() -> None:
    member = MemberDescription("m-1", None, "c", "/h", (P0, P1), subscribed_topics=("t",), metadata=b"\x00")
    group = ConsumerGroupDescription(
        "a", GroupType.CONSUMER, GroupState.STABLE, False, "range", (member,), NODE, 3, 3, frozenset({"READ", "DELETE"})
    )
    (row,) = table(Batch({"a": group}))
    assert (row["group_id"], row["group_state"]) == ("a", "Stable")
    assert row["members"][0]["assignment"] == [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]
    assert (row["members"][0]["upgraded"], row["members"][0]["metadata"]) == (None, b"\x00")
    assert row["coordinator"] == {"id": 1, "host": "a", "port": 9092, "rack": None}
    assert row["authorized_operations"] == ["DELETE", "READ"]


def test_keys_and_values_with_the_same_names() -> None:
    (row,) = table(Batch({Position("t", 0, 5): FirstRecord(7, 1000)}))
    assert (row["offset"], row["record_offset"], row["timestamp"]) == (5, 7, 1000)
    acl = Acl("User:a", AclOperation.READ, AclResourceType.TOPIC, "t")
    (row,) = table(Batch({AclFilter(name="t"): Batch({acl: None})}))
    assert (row["filter_name"], row["filter_principal"], row["name"], row["principal"]) == ("t", None, "t", "User:a")


def test_quotas_and_disks() -> None:
    quotas = {QuotaEntity(user=EntityName.DEFAULT): {"producer_byte_rate": 5.0}}
    assert table(quotas) == [
        {"user": "<default>", "client_id": None, "ip": None, "name": "producer_byte_rate", "value": 5.0, "error": None}
    ]
    rows = table(Batch({1: {"/a": LogDir({P0: Replica(10, 0)}, 100, 50), "/b": LogDir({})}}))
    found = [(row["broker_id"], row["path"], row["topic"], row["size"], row["usable_bytes"]) for row in rows]
    assert found == [(1, "/a", "t", 10, 50), (1, "/b", None, None, None)]


def test_a_broker_that_could_not_be_asked_has_a_row() -> None:
    listing = GroupListing("a", "consumer", None, None)
    rows = table(GroupListings({"a": listing}, {NODE: NotLeaderOrFollower("later")}))
    assert [(row["group_id"], row["error"]) for row in rows] == [("a", None), (None, "NotLeaderOrFollower: later")]


def test_what_is_empty_has_its_columns_where_they_are_known() -> None:
    assert to_arrow(GroupListings({}, {})).schema.names == [*GroupListing._fields, "error"]
    assert to_arrow(TransactionListings({}, {})).schema.names == ["transactional_id", "producer_id", "state", "error"]
    assert to_arrow(GroupLags()).schema.names == [*LagRow._fields, "error"]
    assert {*OffsetAndMetadata._fields} <= {*CommittedRow._fields}
    assert {*PartitionLag._fields} - {*LagRow._fields} == {"committed", "member", "failure", "has_records"}
    assert to_arrow([]).schema.names == ["error"]
    assert to_arrow([], Acl).schema.names == [*Acl._fields, "error"]
    only_failures: Batch[str, Any] = Batch({}, {"t": UnknownTopicOrPartition("gone")})
    assert to_arrow(only_failures, TopicDescription).schema.names == [*TopicDescription._fields, "error"]


def test_whole_numbers_stay_whole_in_pandas() -> None:
    frame = to_pandas(Batch({P0: ListedOffset(2**60 + 1)}, {P1: UnknownTopicOrPartition()}))
    assert isinstance(frame, pandas.DataFrame)
    assert str(frame["offset"].dtype) == "Int64"
    assert frame["offset"].tolist()[0] == 2**60 + 1
    assert frame["offset"].isna().tolist() == [False, True]


def test_what_is_no_result_is_refused() -> None:
    with pytest.raises(TypeError, match="no result of a call"):
        to_arrow(object())
    with pytest.raises(TypeError, match="values of one kind, not of str, int"):
        to_arrow({"a": "b", "c": 1})


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(tables, "import_module", missing)
    with pytest.raises(ModuleNotFoundError, match=r"need pyarrow: pip install '\.\[arrow\]' in a checkout"):
        to_arrow([])
    with pytest.raises(ModuleNotFoundError, match=r"need pandas: pip install '\.\[pandas\]' in a checkout"):
        to_pandas([])


def test_every_call_has_a_result_that_is_a_table() -> None:
    """By the types that the calls say they have: each class of values has columns."""
    names: dict[str, object] = {"GroupLags": GroupLags, "Take": object}
    for room in (types, streams_types, resources, access, abc):
        names |= vars(room)
    without = set()
    for name, call in inspect.getmembers(Admin, inspect.iscoroutinefunction):
        if name[0] != "_" and name not in ("connect", "close"):
            kinds = [kind for kind in _values(get_type_hints(call, None, names)["return"]) if kind is not NoneType]
            assert all(len(to_arrow([], kind).schema.names) >= 2 for kind in kinds), name
            without |= set() if kinds else {name}
    assert all(name.split("_")[0] in ("abort", "alter", "create", "delete", "read", "remove") for name in without)


def _values(told: Any) -> list[type]:
    """The classes of a result's values."""
    origin, arguments = get_origin(told), get_args(told)
    if origin in (Batch, dict):
        return _values(arguments[1])
    if origin in (list, tuple):
        return _values(arguments[0])
    if origin is not None:  # X | None
        return [kind for each in arguments for kind in _values(each)]
    values = {GroupLags: GroupLag, GroupListings: GroupListing, TransactionListings: TransactionListing}
    return [values.get(told, told)]


async def test_results_of_a_broker() -> None:
    async with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        created = table(await admin.create_topics([NewTopic("t", 2), NewTopic("bad/")]))
        found = [(row["name"], row["num_partitions"], row["error"] is None) for row in created]
        assert found == [("t", 2, True), ("bad/", None, False)]
        assert dict(created[0]["configs"])["cleanup.policy"] == "delete"
        (await admin.alter_consumer_group_offsets("a", {P0: OffsetAndMetadata(0, metadata="x")})).all()
        rows = table(await admin.lag(["a", "nobody"]))
        assert [
            (row["group_id"], row["topic"], row["committed_offset"], row["lag"], row["status"]) for row in rows
        ] == [("a", "t", 0, 0, "ok"), ("nobody", None, None, None, None)]
        assert table(await admin.topic_settings(["t"], ["retention.ms"])) == [
            {"key": "t", "name": "retention.ms", "value": "604800000", "error": None}
        ]
        (cluster,) = table(await admin.describe_cluster())
        assert cluster["nodes"][0]["host"] == "127.0.0.1"


def test_tuples_of_different_things() -> None:
    layout = Layout(rows_of([StreamsTask("0", 1)]))
    assert list(layout.columns) == ["subtopology_id", "partition", "error"]
    hint = tuple[str, int]
    assert tables._arrow_type(pyarrow, hint) == pyarrow.struct([("f0", pyarrow.string()), ("f1", pyarrow.int64())])
