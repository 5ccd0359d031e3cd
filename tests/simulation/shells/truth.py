"""What clients know of offsets, transactions and shares, over all lives of the broker."""

from tests.simulation.shells.damage import FlippedBit
from tests.simulation.shells.records import TOPIC, Records, Violation

from groupkeeper.protocol import errors

GROUPS, PRODUCERS, SHARES = 3, 2, 2
UNCERTAIN = errors.UnknownServerError.code
"""With any other error nothing has happened."""


class Offset:
    """What is known of one committed offset: one of these values is there."""

    def __init__(self) -> None:
        self.possible = {-1}
        self.past = {-1}
        self.last = 0

    def told(self, value: int, code: int) -> None:
        """How a commit was answered."""
        if code == errors.NONE:
            self.possible = {value}
        elif code == UNCERTAIN:
            self.possible.add(value)
        self.past |= self.possible

    def lose_power(self) -> None:
        """The end of a log is gone: any earlier value may be the last one."""
        self.possible = set(self.past)

    def check(self, what: str, seen: int) -> None:
        """What was read, and stays."""
        if seen not in self.possible:
            raise Violation(f"{what}: {seen}, and it can only be {sorted(self.possible)}")
        self.possible = {seen}


class Truth:
    """What clients know, over all lives of the broker."""

    def __init__(self) -> None:
        self.offsets = {f"plain-{one}": Offset() for one in range(GROUPS)}
        self.offsets |= {f"transactional-{one}": Offset() for one in range(PRODUCERS)}
        self.accepted: dict[int, set[int]] = {one: set() for one in range(SHARES)}
        self.given_up: dict[int, set[int]] = {one: set() for one in range(SHARES)}
        """Delivered as often as may be, or perhaps accepted; they need not come again."""
        self.is_member_gone = False
        self.producer_ids: dict[int, str] = {}
        self.records = Records()
        self.acknowledged = 0
        self.power_failures = 0
        self.is_after_power_failure = False

    def lose_power(self) -> None:
        """What was acknowledged lately may be gone, but for producer ids: none is given out twice."""
        self.records.lose_power()
        for offset in self.offsets.values():
            offset.lose_power()
        self._lose_coordination()

    def _lose_coordination(self) -> None:
        """Of transactions and share groups anything may be gone that was written lately."""
        self.power_failures += 1
        self.is_after_power_failure = True
        self.records.lose_transactions()
        for name, offset in self.offsets.items():
            if name.startswith("transactional"):
                offset.lose_power()
        for number, accepted in self.accepted.items():
            self.given_up[number] |= accepted
            accepted.clear()

    def lose(self, bit: FlippedBit) -> None:
        """What is intact stays: only the batch with the bit may be gone."""
        if bit.header is None or bit.path is None:
            return
        topic = bit.path.parent.name.rpartition("-")[0]
        if topic == TOPIC:
            self.records.lose(bit.header)
        for name, offset in self.offsets.items():
            if name.encode() in bit.batch:
                offset.lose_power()
        if bit.header.is_transactional or topic not in (TOPIC, "__consumer_offsets"):
            self._lose_coordination()
