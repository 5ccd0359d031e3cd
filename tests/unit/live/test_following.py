"""What is known only from poll to poll: rebalances, and since when commits stand still."""

import pytest
from tests.unit.live.views import described, member, row

from groupkeeper.client.admin.types import ConsumerGroupDescription, GroupState, TopicPartition
from groupkeeper.live.standings import Following, KnownGroup, Pauses
from groupkeeper.operations.lag import GroupsLag, PartitionLag
from groupkeeper.operations.watch import What
from groupkeeper.protocol.errors import GroupAuthorizationFailed, LeaderNotAvailable
from groupkeeper.rules.progress import Trend

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def found(group: ConsumerGroupDescription | None, *rows: PartitionLag) -> GroupsLag:
    return GroupsLag({} if group is None else {"g": group}, {"g": list(rows)}, {})


def after(*looks: GroupsLag, known: dict[str, KnownGroup] | None = None) -> Following:
    following = Following(known or {})
    for number, look in enumerate(looks, 1):
        following.follow(look, ["g"], number * 1000)
    return following


def test_epochs_are_rebalances() -> None:
    looks = [found(described(epoch=epoch)) for epoch in (3, 3, 4, 9)]
    assert [after(*looks[:count]).of("g").rebalances for count in (1, 2, 3, 4)] == [0, 0, 1, 6]


def test_a_group_that_was_created_again_has_no_negative_number_of_rebalances() -> None:
    assert after(found(described(epoch=9)), found(described(epoch=1))).of("g").rebalances == 0


def test_rebalances_of_a_classic_group_are_seen_by_members_and_states() -> None:
    one, both = member("a", FIRST, SECOND), [member("a", FIRST), member("b", SECOND)]
    calm, moved = found(described("g", one)), found(described("g", *both))
    preparing = found(described("g", *both, state=GroupState.PREPARING_REBALANCE))
    completing = found(described("g", *both, state=GroupState.COMPLETING_REBALANCE))
    assert after(calm, calm).of("g").rebalances == 0
    assert after(calm, moved).of("g").rebalances == 1
    # One round, seen at several of its stages, is one.
    assert after(calm, preparing, completing, moved).of("g").rebalances == 1
    assert after(calm, moved, preparing, moved).of("g").rebalances == 2
    begun = found(described("g", one, state=GroupState.PREPARING_REBALANCE))
    assert after(calm, begun, moved).of("g").rebalances == 1


def test_a_partition_stands_still_however_the_others_get_on() -> None:
    def stood(*looks: list[PartitionLag], known: dict[str, KnownGroup] | None = None) -> dict[int, tuple[int, int]]:
        found_all = [found(described(), *rows) for rows in looks]
        return {
            tp.partition: (each.offset, each.since_ms)
            for tp, each in after(*found_all, known=known).of("g").stood.items()
        }

    both = [row("t", 0, 10), row("t", 1, 20)]
    moved = [row("t", 0, 10), row("t", 1, 30)]
    done = [row("t", 0, 10), row("t", 1, 100)]
    away = [row("t", 0, 10, None)._replace(failure=LeaderNotAvailable()), row("t", 1, 30)]
    assert stood(both) == {0: (10, 1000), 1: (20, 1000)}
    assert stood(both, moved) == {0: (10, 1000), 1: (30, 2000)}
    assert stood(both, moved, away) == {0: (10, 1000), 1: (30, 2000)}
    assert stood(both, done) == {0: (10, 1000)}
    assert stood(both, done, both) == {0: (10, 1000), 1: (20, 3000)}  # there was nothing to read
    assert stood(both, known={"g": KnownGroup(30, 7)}) == {0: (10, 7), 1: (20, 7)}  # after a restart
    assert stood(both, known={"g": KnownGroup(29, 7)}) == {0: (10, 1000), 1: (20, 1000)}


def test_a_group_is_old_until_a_commit_of_it_is_seen() -> None:
    group = described()
    still, moved, unread = (found(group, row("t", 0, 10)), found(described(), row("t", 0, 30)), GroupsLag({}, {}, {}))
    dead, alive = KnownGroup(10, 7), KnownGroup(10, 7, has_moved=True)
    assert after(still, still).is_old("g")
    assert not after(still, moved).is_old("g")
    for known, is_old in ((dead, True), (alive, False), (KnownGroup(9, 7), False), (KnownGroup(10, None), True)):
        assert after(still, still, known={"g": known}).is_old("g") is is_old
        assert after(unread, still, still, known={"g": known}).is_old("g") is is_old
        assert not after(still, moved, known={"g": known}).is_old("g")


def test_what_changed_is_told() -> None:
    following = Following()
    following.follow(found(described("g", member("a", FIRST))), ["g"], 1000)
    told = following.follow(found(described("g", member("b", FIRST))), ["g"], 2000)
    seen = [(change.what, change.member and change.member.client_id) for change in told]
    assert seen == [(What.LEFT, "a"), (What.JOINED, "b")]


def test_commits_stand_still_since_the_look_that_found_them() -> None:
    assert after(found(None)).of("g").progress_ms is None
    assert after(found(None, row("t", 0, 5)), found(None, row("t", 0, 5))).of("g").progress_ms == 1000
    assert after(found(None, row("t", 0, 5)), found(None, row("t", 0, 6))).of("g").progress_ms == 2000
    known = {"g": KnownGroup(6, 77)}
    assert after(found(None, row("t", 0, 6)), known=known).of("g").progress_ms == 77
    assert after(found(None, row("t", 0, 7)), known=known).of("g").progress_ms == 1000


def test_what_cannot_be_seen_now_is_no_progress() -> None:
    hidden = row("t", 0, None)._replace(failure=GroupAuthorizationFailed())
    assert (
        after(found(None, row("t", 0, 5)), found(None, hidden), found(None, row("t", 0, 5))).of("g").progress_ms == 1000
    )
    share = row("t", 0, 5)._replace(done_ahead=3)
    shares = [found(None, share._replace(done_ahead=each)) for each in (3, None, None, 3)]
    assert after(*shares).of("g").progress_ms == 1000


def test_a_group_that_cannot_be_described_for_a_while_has_not_rebalanced() -> None:
    group = described(epoch=3)
    assert after(found(group), found(None), found(described(epoch=4))).of("g").rebalances == 1
    assert after(found(group), found(None)).group_ids() == {"g"}


def test_groups_that_are_gone_are_forgotten() -> None:
    following = after(found(described(epoch=3), row("t", 0, 5)))
    following.follow(GroupsLag({}, {}, {}), [], 2000)
    following.follow(found(described(epoch=9), row("t", 0, 5)), ["g"], 3000)
    assert (following.of("g").rebalances, following.of("g").progress_ms) == (0, 3000)


def test_the_trend_of_the_lag() -> None:
    def lag(*committed: int | None) -> GroupsLag:
        return found(None, *(row("t", number, each) for number, each in enumerate(committed)))

    assert after(lag(50)).of("g").lag_change_per_s is None
    assert after(lag(50), lag(60)).of("g").lag_change_per_s == -10
    assert after(lag(50, None), lag(40, None)).of("g").lag_change_per_s == 10
    assert after(lag(50), lag(60), lag(60)).of("g").lag_change_per_s == pytest.approx(-7)
    hidden = found(None, row("t", 0, None)._replace(failure=GroupAuthorizationFailed()))
    assert after(lag(50), hidden, lag(60)).of("g").lag_change_per_s is None
    assert after(lag(None), lag(50)).of("g").lag_change_per_s is None
    assert after(lag(None), lag(50), lag(60)).of("g").lag_change_per_s == -10
    assert after(lag(50, None), lag(50, 0)).of("g").lag_change_per_s == 0  # nor is it beside other commits


def test_a_lag_that_hardly_changes_beside_the_rates_is_steady_as_in_commands() -> None:
    def looks(produced: int, consumed: int) -> list[GroupsLag]:
        ends = [(100 + produced * number, 50 + consumed * number) for number in range(4)]
        # A topic with more records, which got its first commit at the last look, counts in no rate.
        more = [[row("new", 0, None, 9_000_000)]] * 3 + [[row("new", 0, 9_000_000, 9_000_000)]]
        return [found(None, *new, row("t", 0, at, end)) for (end, at), new in zip(ends, more, strict=True)]

    assert after(*looks(100, 97)[:1]).of("g").trend is None
    trends = {pair: after(*looks(*pair)).of("g").trend for pair in [(100, 97), (100, 90), (90, 100), (100, 103)]}
    assert list(trends.values()) == [Trend.STEADY, Trend.GROWING, Trend.SHRINKING, Trend.STEADY]


def test_long_gaps_between_commits_become_a_habit_and_outages_do_not() -> None:
    hour, second = 3_600_000, 1000

    def usual(*gaps: int) -> int | None:
        pauses = Pauses()
        for gap in gaps:
            pauses = pauses.then(gap)
        return pauses.usual_ms

    assert usual(hour, hour) is None
    assert usual(*[hour, *[second] * 300] * 3) == hour  # a batch of five minutes each hour
    assert usual(*[hour, *[second] * 7200] * 9) is None  # an outage of an hour after two good ones, again and again
    assert usual(*[hour] * 3, *[15 * second] * 10_000) is None  # it was a batch, and is no longer
    following = Following()
    for number, offset in enumerate((1, 2, 3, 4)):
        following.follow(found(described(), row("t", 0, offset)), ["g"], number * hour)
    assert following.of("g").pauses.usual_ms == hour


def test_rebalances_of_the_last_ten_minutes() -> None:
    following = Following()
    for number in range(13):
        following.follow(found(described(epoch=number * 3)), ["g"], number * 60_000)
    assert following.of("g").lately == 30
    following.follow(found(described(epoch=36)), ["g"], 20 * 60_000)
    assert following.of("g").lately == 6
    following.follow(found(described(epoch=9999)), ["g"], 21 * 60_000)
    assert following.of("g").lately == 100
