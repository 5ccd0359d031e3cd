"""The SASL mechanisms of the client and of the broker are the same, and each has its own conversation."""

from weakref import WeakValueDictionary

import pytest

from groupkeeper.broker.security import sasl as brokers
from groupkeeper.broker.security.properties import ListenerProperties
from groupkeeper.broker.settings.config import Config
from groupkeeper.client.security import sasl as clients
from groupkeeper.client.security.transport import Security
from groupkeeper.security.scram import HASH_BY_MECHANISM

CONVERSATIONS = {"PLAIN": "Plain", "SCRAM-SHA-256": "Scram", "SCRAM-SHA-512": "Scram", "OAUTHBEARER": "OAuthBearer"}
"""By mechanism the name of the class, at both ends."""
LOGIN = 'required username="alice" password="secret" unsecuredLoginStringClaim_sub="alice";'


def of_client(mechanism: str) -> clients.SaslSecurity:
    properties = {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"org.apache.kafka.{clients.MECHANISMS[mechanism]} {LOGIN}",
    }
    return clients.sasl_security(Security(), properties, None)


def of_broker(mechanism: str) -> brokers.ListenerSasl:
    config = Config.from_texts({"sasl.enabled.mechanisms": mechanism})
    listener = ListenerProperties(config, "CLIENTS")
    return brokers.ListenerSasl(listener, {"alice": "secret"}, lambda *_: None, lambda: 0, WeakValueDictionary())


def test_both_ends_know_the_same_mechanisms() -> None:
    assert sorted(clients.MECHANISMS) == sorted(brokers.MECHANISMS) == sorted(CONVERSATIONS), (
        "MECHANISMS of client/security/sasl.py and of broker/security/sasl.py, and CONVERSATIONS here"
    )
    *_, named = Config.sasl_enabled_mechanisms.doc.rpartition(": ")
    assert named == ", ".join(brokers.MECHANISMS) + ".", "sasl.enabled.mechanisms in broker/settings/config.py"
    others = [name for mechanism, name in CONVERSATIONS.items() if mechanism not in HASH_BY_MECHANISM]
    assert len({*others, "Scram"}) == len(others) + 1, "a mechanism has the conversation of another"


@pytest.mark.parametrize("mechanism", clients.MECHANISMS)
async def test_each_mechanism_has_its_own_conversation(mechanism: str) -> None:
    begun = await of_client(mechanism)._begin(), of_broker(mechanism).begin(mechanism)
    assert [type(one).__name__ for one in begun] == [CONVERSATIONS.get(mechanism)] * 2, (
        "`_by_password` of the client and `_beginning` of the broker begin it"
    )


@pytest.mark.parametrize("name", ["NEW", "PLAIN-NEW", "SCRAM-SHA-1024"])
def test_a_new_mechanism_is_not_taken_for_another(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What begins it is named, too: `_by_password` of the client and `_beginning` of the broker."""
    monkeypatch.setitem(clients.MECHANISMS, name, "new.PlainNewLoginModule")
    monkeypatch.setattr(brokers, "MECHANISMS", (*brokers.MECHANISMS, name))
    for end in (of_client, of_broker):
        with pytest.raises(AssertionError, match=name):
            end(name)
