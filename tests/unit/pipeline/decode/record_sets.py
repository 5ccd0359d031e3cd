"""Record sets, read whole: jobs fetch batches first, and look at their records later."""

from collections.abc import Sequence

from groupkeeper.pipeline.decode.batches import RecordSet, read_batches
from groupkeeper.pipeline.decode.records import Records, records_seen


def read_record_sets(sets: Sequence[RecordSet], *, verify: bool = True) -> tuple[Records, list[int | None]]:
    """The records of `records_seen`, and for each set the offset after its last whole batch; None: none is whole.
    Raises CorruptBatch.
    """
    batches = read_batches(sets, verify=verify)
    return records_seen(batches, sets), batches.next_offsets
