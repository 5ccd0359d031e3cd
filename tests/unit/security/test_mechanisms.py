"""The SASL mechanisms of the client and of the broker are the same."""

from groupkeeper.broker.security import sasl as brokers
from groupkeeper.client.security import sasl as clients
from groupkeeper.security.scram import HASH_BY_MECHANISM


def test_both_ends_know_the_same_mechanisms() -> None:
    assert sorted(clients.MECHANISMS) == sorted(brokers.MECHANISMS)


def test_each_mechanism_has_its_own_conversation() -> None:
    """What is neither PLAIN nor OAUTHBEARER logs in by SCRAM, at both ends."""
    assert {*clients.MECHANISMS} - {"PLAIN", "OAUTHBEARER"} == {*HASH_BY_MECHANISM}
