"""What is told of tables that could not be written."""

from groupkeeper.pipeline.jobs.refresh import failures_told


def test_a_full_disk_is_told_once() -> None:
    full = "[Errno 28] No space left on device: '{}.parquet'"
    reasons = {"lag": full.format("a"), "status": full.format("b"), "owners": "no broker", "stale": "no broker"}
    assert failures_told(reasons) == [
        "tables lag, status: [Errno 28] No space left on device: 'a.parquet'",
        "tables owners, stale: no broker",
    ]
    assert failures_told({"lag": "no broker"}) == ["table lag: no broker"]
    assert failures_told({}) == []
