"""What records of groups are about, by their names."""

import pyarrow as pa

from groupkeeper.pipeline.transforms.record_kinds import KIND_OF, RecordKind, rows_of
from groupkeeper.protocol.offsets_topic import _CLASSES as CLASSES
from groupkeeper.protocol.streams_records import STREAMS_CLASSES

NAMES = [
    pair[0].__name__.removesuffix("Key") for classes in (CLASSES, STREAMS_CLASSES) for pair in classes.values()
]  # fmt: skip


def test_each_kind_is_that_of_records_that_there_are() -> None:
    assert set(KIND_OF) <= set(NAMES)
    without = {name for name in NAMES if name not in KIND_OF}
    assert not {name for name in without if name.endswith(("MemberMetadata", "MemberAssignment", "AssignmentMember"))}


def test_rows_of_kinds() -> None:
    names = pa.array(["GroupMetadata", None, "StreamsGroupMetadata", "ShareGroupMemberMetadata", "EndTransaction"])
    assert rows_of(names, RecordKind.GROUP).tolist() == [True, False, True, False, False]
    assert rows_of(names, RecordKind.GROUP, RecordKind.MEMBER).tolist() == [True, False, True, True, False]
    assert rows_of(pa.chunked_array([names]), RecordKind.TARGET).tolist() == [False] * 5
