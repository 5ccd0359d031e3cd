"""What of people is kept of decoded records: every field of every record is known, and nothing private stays."""

import importlib
import json
import pkgutil
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from groupkeeper.pipeline.decode.privacy import PRIVATE_FIELDS, PUBLIC_FIELDS, Privacy
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.tables import DECODED
from groupkeeper.pipeline.tables.log import GROUP_RECORD, MEMBER
from groupkeeper.protocol import messages
from groupkeeper.protocol.primitives import Message

KEY = b"a key that nobody guesses"
EMPTIED = {"subscription", "assignment", "metadata", "key", "value"}
"""What clients pack, and settings by any name."""


def record_classes() -> Iterator[type[Message]]:
    """Those of all records of groups."""
    for found in pkgutil.iter_modules(messages.__path__):
        is_group = found.name.startswith(("group_metadata", "consumer_group_", "share_group_", "streams_group_"))
        if is_group and found.name.endswith(("_key", "_value")) and "share_group_state" not in found.name:
            module = importlib.import_module(f"{messages.__name__}.{found.name}")
            for each in vars(module).values():
                if isinstance(each, type) and issubclass(each, Message) and each.__module__ == module.__name__:
                    yield each


def test_each_text_of_each_record_is_known() -> None:
    """One that comes with a later version of Kafka is emptied until someone has decided."""
    texts = {
        name
        for each in record_classes()
        for name in each.__slots__
        if isinstance(getattr(each(), name), str | bytes | None)
    }
    assert {"client_host", "member_id", "group_instance_id", "process_id", "host", "subscription"} <= texts
    not_text = {"classic_member_metadata", "user_endpoint", "last_assignment_configs"}
    assert texts - PRIVATE_FIELDS.keys() - PUBLIC_FIELDS - EMPTIED - not_text == set()
    columns = [column.name for column in GROUP_RECORD if column.type == pa.string()]
    own = [field.name for field in MEMBER if field.type == pa.string()]
    assert {*columns, *own} - PRIVATE_FIELDS.keys() - PUBLIC_FIELDS == {"key_json", "value_json"}


RECORD: dict[str, Any] = {
    "record_name": "GroupMetadata", "leader": "app-7f3", "protocol_type": "consumer",
    "members": [
        {"member_id": "app-7f3", "instance_id": "vm-12", "client_id": "app", "client_host": "/10.0.0.7",
         "subscribed_topics": ["orders"]}
    ],
    "key_json": '{"group":"billing"}',
    "value_json": json.dumps({
        "protocolType": "consumer", "generation": 3, "leader": "app-7f3",
        "members": [{"memberId": "app-7f3", "groupInstanceId": "vm-12", "clientId": "app", "clientHost": "/10.0.0.7",
                     "rebalanceTimeout": 1, "subscription": "aG9zdDogMTAuMC4wLjc=", "assignment": ""}],
        "userEndpoint": {"host": "vm-12.example.org", "port": 9}, "clientTags": [{"key": "vm", "value": "vm-12"}],
    }),
}  # fmt: skip


def batch_of(*rows: Mapping[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=DECODED.arrow)


def test_dropped_and_salted_values_are_nowhere_left() -> None:
    privacy = Privacy.of({"hosts": "drop", "client_ids": "drop", "metadata": "salt"}, KEY)
    rows: list[dict[str, Any]] = [
        {"group_id": "billing", "group_record": json.dumps(RECORD)},
        {"group_id": "billing", "metadata": "by hand of jo", "committed_offset": 4},
        {"group_id": "billing", "metadata": ""},
        {"problem": "unknown", "raw_key": b"app", "raw_value": b"10.0.0.7", "group_record": '{"raw_bytes":11}'},
        {"group_id": "billing", "metadata": "by hand of jo"},
    ]
    found = privacy.applied(batch_of(*rows)).to_pylist()
    left = repr(found)
    assert [text for text in ("10.0.0.7", "vm-12", "app", "hand", "aG9zd", "example") if text in left] == []
    row = json.loads(found[0]["group_record"])
    (member,) = row["members"]
    assert (member["client_host"], member["client_id"]) == (None, None)
    assert member["member_id"] == row["leader"] == json.loads(row["value_json"])["members"][0]["memberId"]
    assert member["member_id"] != member["instance_id"]
    assert member["subscribed_topics"] == ["orders"]
    assert json.loads(row["key_json"]) == {"group": "billing"}
    assert json.loads(row["value_json"])["generation"] == 3
    assert found[1]["metadata"] == found[4]["metadata"] not in ("", None)
    assert found[2]["metadata"] == ""
    assert (found[1]["committed_offset"], found[3]["group_record"]) == (4, '{"raw_bytes":11}')
    assert found[3]["raw_key"] is found[3]["raw_value"] is None


def test_the_same_text_is_the_same_by_the_same_key_only() -> None:
    def salted(key: bytes) -> str:
        privacy = Privacy.of({"metadata": "salt"}, key)
        return str(privacy.applied(batch_of({"metadata": "m"}))["metadata"][0])

    assert salted(KEY) == salted(KEY) != salted(KEY[::-1])
    one, other = (Privacy.of({"metadata": "salt"}, key).choice for key in (KEY, KEY[::-1]))
    assert one["key"] != other["key"]
    assert KEY.hex() not in json.dumps(one)


def test_what_is_kept_stays_as_it_is() -> None:
    batch = batch_of({"metadata": "m", "raw_key": b"k", "group_record": json.dumps(RECORD)})
    assert Privacy.of({"hosts": "keep"}, None).applied(batch) is batch
    metadata_only = Privacy.of({"metadata": "drop"}, None).applied(batch).to_pylist()[0]
    assert (metadata_only["metadata"], metadata_only["raw_key"]) == (None, None)
    assert json.loads(metadata_only["group_record"]) == RECORD


@pytest.mark.parametrize(
    ("modes", "key", "refused"),
    [
        ({"member_ids": "drop"}, KEY, "member ids tell members apart: choose member-ids=salt"),
        ({"client_ids": "drop", "member_ids": "keep"}, KEY, "member ids begin with the client id"),
        ({}, KEY, "there is a key, but nothing to salt"),
        ({"client_ids": "drop"}, None, "to salt takes a key: give --privacy-key FILE"),
        ({"hosts": "salt"}, b"short", "the key has 5 bytes, it needs 16 at least"),
        ({"hosts": "hide"}, KEY, "hosts=hide: expected one of hosts, client_ids, member_ids, metadata, and keep"),
        ({"users": "drop"}, KEY, "users=drop: expected"),
    ],
)
def test_what_does_not_go_is_refused(modes: dict[str, str], key: bytes | None, refused: str) -> None:
    with pytest.raises(SourceError, match=refused):
        Privacy.of(modes, key)
