"""The tour: its steps in order, and what each step shows."""

import time
from datetime import UTC, datetime

from groupkeeper.demo import traffic
from groupkeeper.demo.queue import work_off_a_queue
from groupkeeper.demo.stage import Terminal, TourFailed, emphasised, running_broker, say
from groupkeeper.demo.tables import make_tables
from groupkeeper.demo.watch import watch_groups

__all__ = ["TourFailed", "run"]

STOPPED_GROUP = "billing"
LIVE_GROUP = "shipping"
STOPPED_FOR_MS = 40 * 60_000

NEXT = """
Three things to try next
  1. Keep a broker, and point your own clients at it:
     groupkeeper broker --port 9092 --data ./kafka-data
  2. Look at a cluster of yours; this only reads:
     kafka-consumer-groups --bootstrap-server HOST:9092 --describe --all-groups
  3. Rehearse a reset there; nothing changes without --execute:
     kafka-consumer-groups --bootstrap-server HOST:9092 \\
       --reset-offsets --group GROUP --topic TOPIC --by-duration PT1H --dry-run
(In this checkout the commands are in .venv/bin. The README has the rest, and the broker as a pytest fixture.)"""


def run() -> None:
    """Runs the whole tour on a broker of its own.

    Raises:
        TourFailed: a step did not show what it should.
    """
    started = time.monotonic()
    say("Starting a broker in a process of its own ...")
    with running_broker() as address:
        say(f"  it is ready at {address} after {time.monotonic() - started:.2f} s")
        sent = make_traffic(address)
        with traffic.live_members(address, LIVE_GROUP, 2, len(sent)):
            say(f"  {LIVE_GROUP}: two members of kafka-python read everything and stay")
            terminal = Terminal(address)
            look_around(terminal)
            rewind(terminal, sent)
            forget_a_topic(terminal)
            work_off_a_queue(terminal)
            watch_groups(terminal)
        make_tables(address)
    say(NEXT)
    say(f"\n{terminal.steps} commands, {time.monotonic() - started:.0f} s in all; the broker and its files are gone.")


def make_traffic(address: str) -> list[traffic.Sent]:
    say(emphasised("\nReal input: records of the last three hours, and consumers in two groups"))
    now_ms = int(time.time() * 1000)
    sent = traffic.past_hours(now_ms)
    before = [one for one in sent if one.timestamp_ms < now_ms - STOPPED_FOR_MS]
    traffic.create_topics(address)
    traffic.produce(address, before)
    reading = traffic.read_in_group(address, STOPPED_GROUP, len(before))
    say(f"  {STOPPED_GROUP}: a member of confluent-kafka read {reading.total} records, committed and left")
    traffic.produce(address, sent[len(before) :])
    counted = " and ".join(f"{count} {topic}" for topic, count in traffic.RECORDS_BY_TOPIC.items())
    say(f"  {counted} are in the log, produced with confluent-kafka (idempotent, gzip)")
    return sent


def look_around(terminal: Terminal) -> None:
    say(emphasised("\nLook: which groups are there, how far are they, who is in them?"))
    terminal.show(
        f"{LIVE_GROUP} has members and is Stable; {STOPPED_GROUP} has none and is Empty, its offsets are kept",
        "kafka-consumer-groups --list --state",
        expect="Stable",
    )
    terminal.show(
        f"LAG is what came in since {STOPPED_GROUP} left: records of the last 40 minutes",
        f"kafka-consumer-groups --describe --group {STOPPED_GROUP}",
        expect="LAG",
    )
    terminal.show(
        "the two members share five partitions",
        f"kafka-consumer-groups --describe --group {LIVE_GROUP} --members --verbose",
        expect=f"{LIVE_GROUP}-2",
    )


def total_lag(described: str) -> int:
    """The sum of the column LAG in the output of --describe."""
    rows = [line.split() for line in described.splitlines() if line.startswith(STOPPED_GROUP)]
    return sum(int(row[5]) for row in rows)


def rewind(terminal: Terminal, sent: list[traffic.Sent]) -> None:
    say(emphasised(f"\nAct: {STOPPED_GROUP} charged wrong amounts in the last hour; it has to read that hour again"))
    since_ms = (int(time.time() * 1000) - traffic.HOUR_MS) // 1000 * 1000
    since = datetime.fromtimestamp(since_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.000")
    reset = f"kafka-consumer-groups --reset-offsets --group {STOPPED_GROUP} --all-topics --to-datetime {since}"
    terminal.show(
        "NEW-OFFSET is what would be committed; a dry run changes nothing", f"{reset} --dry-run", expect="NEW-OFFSET"
    )
    terminal.show(
        "groupkeeper's own form shows both offsets, and only rehearses without --execute",
        f"groupkeeper groups reset {STOPPED_GROUP} --all-topics --to-datetime {since}",
        expect="COMMITTED-OFFSET",
    )
    terminal.show("now it is committed", f"{reset} --execute", expect="NEW-OFFSET")
    wanted = sum(one.timestamp_ms >= since_ms for one in sent)
    described = terminal.show(
        f"the lag is the last hour's records: {wanted} were produced since then",
        f"kafka-consumer-groups --describe --group {STOPPED_GROUP}",
        expect=STOPPED_GROUP,
    )
    if total_lag(described) != wanted:
        raise TourFailed(f"the lag is {total_lag(described)}, not {wanted}")
    reading = traffic.read_in_group(terminal.address, STOPPED_GROUP, wanted)
    oldest = datetime.fromtimestamp((reading.oldest_ms or 0) / 1000, UTC).strftime("%H:%M:%S")
    say(f"\n  {STOPPED_GROUP} came back, read {reading.total} records, the oldest of {oldest} UTC, and left again")
    if reading.oldest_ms is None or reading.oldest_ms < since_ms:
        raise TourFailed(f"the oldest record read again is of {oldest}, before {since}")
    described = terminal.show(
        "no lag is left: exactly the records since then were read again",
        f"kafka-consumer-groups --describe --group {STOPPED_GROUP}",
        expect=STOPPED_GROUP,
    )
    if total_lag(described) != 0:
        raise TourFailed(f"the lag is {total_lag(described)}, not 0")
    terminal.show(
        f"{LIVE_GROUP} is active, so a reset is refused: its members would overwrite it",
        f"kafka-consumer-groups --reset-offsets --group {LIVE_GROUP} --topic orders --to-earliest --execute",
        expect="inactive",
        refused=True,
    )


def forget_a_topic(terminal: Terminal) -> None:
    say(emphasised(f"\nTidy up: {STOPPED_GROUP} no longer reads payments"))
    terminal.show(
        "the committed offsets of that topic are deleted",
        f"kafka-consumer-groups --delete-offsets --group {STOPPED_GROUP} --topic payments",
        expect="payments",
    )
    left = terminal.show(
        "only orders is left, and payments is neither late nor stale",
        f"kafka-consumer-groups --describe --group {STOPPED_GROUP}",
        expect="orders",
    )
    if "payments" in left:
        raise TourFailed("the offsets of payments are still there")
    terminal.show(
        "all groups at a glance (--output json is for programs)",
        "groupkeeper groups describe --all-groups --view state",
        expect=LIVE_GROUP,
    )
