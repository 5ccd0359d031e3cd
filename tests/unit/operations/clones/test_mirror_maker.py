"""By which names MirrorMaker 2 is recognised, and which of its syncs count."""

import pytest

from groupkeeper.operations.plans.clones.mirror_maker import names_of
from groupkeeper.operations.plans.clones.mirror_syncs import Pair, RepeatedRange, Syncs, SyncWay
from groupkeeper.operations.plans.clones.translator import Ends


@pytest.mark.parametrize("separator", [".", "_", "--"])
def test_copies_are_recognised_by_the_alias_of_the_source(separator: str) -> None:
    """Internal topics have the separator of the policy, or a dot."""
    for internal in (separator, "."):
        copies = [f"east{separator}orders", f"east{separator}a.b", "eastern", "orders", "west.orders"]
        source = ["orders", f"mm2-offset-syncs{internal}west{internal}internal"]
        names = names_of(source, [*copies, f"east{internal}checkpoints{internal}internal"])
        assert names.copies["orders"] == [f"east{separator}orders"]
        assert names.copies["a.b"] == [f"east{separator}a.b"]
        assert "ern" not in names.copies
        assert len(names.checkpoints) == len(names.syncs_here) == 1
        assert not names.syncs_there


def test_syncs_in_the_target_name_the_source_too() -> None:
    names = names_of(["orders"], ["mm2-offset-syncs.east.internal", "east.orders"])
    assert names.copies["orders"] == ["east.orders"]
    assert names.syncs_there == ["mm2-offset-syncs.east.internal"]
    assert names_of(["orders"], ["east.orders", "orders"]).copies == {}


def syncs_of(*pairs: tuple[int, int]) -> Syncs:
    syncs = Syncs()
    for pair in pairs:
        syncs.add(Pair(*pair))
    return syncs


def test_what_was_copied_again_counts_from_there() -> None:
    ends = Ends(0, 500), Ends(0, 610)
    syncs = syncs_of((0, 0), (100, 100), (200, 200), (150, 260), (250, 360))
    assert syncs.way_to(210, *ends) == SyncWay(Pair(150, 260), 360, None)
    assert syncs.way_to(120, *ends) == SyncWay(Pair(100, 100), 200, RepeatedRange(200, 260, 60))
    assert syncs.way_to(300, *ends) == SyncWay(Pair(250, 360), 610, None)
    assert syncs.way_to(300, Ends(0, 499), ends[1]) == SyncWay(Pair(250, 360), 610, RepeatedRange(360, 610, 250))
    assert syncs.way_to(120, Ends(0, 499), ends[1]) == SyncWay(Pair(100, 100), 200, RepeatedRange(200, 610, 310))


def test_more_copies_than_records_may_be_copies_again() -> None:
    """The first syncs after a start may be left out."""
    way = syncs_of((0, 0), (100, 100), (150, 400)).way_to(50, Ends(0, 150), Ends(0, 400))
    assert way == SyncWay(Pair(0, 0), 100, RepeatedRange(100, 400, 300))


def test_a_topic_that_was_created_again_has_new_syncs() -> None:
    syncs = syncs_of((0, 0), (100, 100), (150, 10))
    assert syncs.way_to(120, Ends(0, 200), Ends(0, 60)) is None
    assert syncs.way_to(150, Ends(0, 200), Ends(0, 60)) == SyncWay(Pair(150, 10), 60, None)
