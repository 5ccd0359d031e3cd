"""The SASL mechanisms of the client and of the broker are the same, and each has its own conversation."""

import re
from collections.abc import Mapping
from pathlib import Path
from weakref import WeakValueDictionary

import pytest

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.security import sasl as brokers
from groupkeeper.broker.security.conversation import LoginRefused
from groupkeeper.broker.security.properties import ListenerProperties
from groupkeeper.broker.settings.config import Config
from groupkeeper.client.admin.resources.access_types import ScramMechanism
from groupkeeper.client.security import sasl as clients
from groupkeeper.client.security.transport import Security
from groupkeeper.security.scram import HASH_BY_MECHANISM

PAGES = [Path(__file__).resolve().parents[3] / "docs" / name for name in ("security.md", "broker-security.md")]
CONVERSATIONS = {"PLAIN": "Plain", **dict.fromkeys(HASH_BY_MECHANISM, "Scram"), "OAUTHBEARER": "OAuthBearer"}
"""By mechanism the name of the class, at both ends."""
LOGIN = 'required username="alice" password="secret" unsecuredLoginStringClaim_sub="alice";'


def of_client(mechanism: str) -> clients.SaslSecurity:
    properties = {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"org.apache.kafka.{clients.MECHANISMS[mechanism]} {LOGIN}",
    }
    return clients.sasl_security(Security(), properties, None)


def of_broker(
    mechanism: str, settings: Mapping[str, str] = {}, users: Mapping[str, str] = {"alice": "secret"}
) -> brokers.ListenerSasl:
    config = Config.from_texts({"sasl.enabled.mechanisms": mechanism, **settings})
    listener = ListenerProperties(config, "CLIENTS")
    return brokers.ListenerSasl(listener, users, lambda *_: None, lambda: 0, WeakValueDictionary())


def test_both_ends_know_the_same_mechanisms() -> None:
    assert sorted(clients.MECHANISMS) == sorted(brokers.MECHANISMS) == sorted(CONVERSATIONS), (
        "MECHANISMS of client/security/sasl.py and of broker/security/sasl.py, and CONVERSATIONS here"
    )
    *_, named = Config.sasl_enabled_mechanisms.doc.rpartition(": ")
    assert named == ", ".join(brokers.MECHANISMS) + ".", "sasl.enabled.mechanisms in broker/settings/config.py"
    assert list(HASH_BY_MECHANISM)[:2] == ["SCRAM-SHA-256", "SCRAM-SHA-512"], "their places are Kafka's codes"
    assert ["UNKNOWN", *HASH_BY_MECHANISM] == list(ScramMechanism), (
        "ScramMechanism of client/admin/resources/access_types.py; the place in HASH_BY_MECHANISM is Kafka's code"
    )
    others = [name for mechanism, name in CONVERSATIONS.items() if mechanism not in HASH_BY_MECHANISM]
    assert len({*others, "Scram"}) == len(others) + 1, (
        "a mechanism has a class of its own at both ends, also where the exchange is another's: class New(Plain)"
    )


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


async def logged_in(mechanism: str, sasl: brokers.ListenerSasl) -> str:
    """The principal as which the client logs in. Raises LoginRefused."""
    client, broker = await of_client(mechanism)._begin(), sasl.begin(mechanism)
    message: bytes | None = client.first()
    while message is not None and broker.identity is None:
        message = client.answer(await broker.answer(message))
    assert broker.identity is not None
    return broker.identity.principal


@pytest.mark.parametrize("mechanism", [one for one in brokers.USERS_MECHANISMS if one not in HASH_BY_MECHANISM])
async def test_the_client_logs_in_at_the_broker(mechanism: str) -> None:
    """A login by SCRAM is stored first: tests/broker/security/test_sasl.py."""
    assert await logged_in(mechanism, of_broker(mechanism)) == "User:alice"
    for users in ({"alice": "other"}, {"bob": "secret"}):
        with pytest.raises(LoginRefused):
            await logged_in(mechanism, of_broker(mechanism, users=users))


def test_users_log_in_by_each_mechanism_of_passwords() -> None:
    assert {*brokers.USERS_MECHANISMS} == {*brokers.MECHANISMS} - {"OAUTHBEARER"}, "USERS_MECHANISMS of the broker"
    for mechanism in brokers.USERS_MECHANISMS:
        unnamed = [page.name for page in PAGES if not re.search(rf"\b{mechanism}\b(?!-)", page.read_text())]
        assert unnamed == [], f"these pages of docs do not name {mechanism}"


@pytest.mark.parametrize("mechanism", [one for one in brokers.USERS_MECHANISMS if one not in HASH_BY_MECHANISM])
async def test_users_of_a_mechanism_are_those_of_its_own_module(mechanism: str) -> None:
    name = f"listener.name.clients.{mechanism.lower()}.sasl.jaas.config"
    module = f"org.apache.kafka.common.security.{clients.MECHANISMS[mechanism]}"
    with pytest.raises(InvalidSetting, match=f"{mechanism} has no users: set {re.escape(name)}") as caught:
        of_broker(mechanism, users={})
    found = re.search(r' required (\w+)alice="', str(caught.value))
    assert found, "the refusal says how an option names a user"
    shown = any(re.search(rf"{re.escape(name)}=.* {found[1]}\w+=", page.read_text()) for page in PAGES)
    assert shown, f"docs/broker-security.md shows {name}=… with options {found[1]}NAME, as the refusal does"
    alice = f'{found[1]}alice="secret"'
    broker = of_broker(mechanism, {name: f"{module} required {alice};"}, users={})
    assert await logged_in(mechanism, broker) == "User:alice"
    with pytest.raises(InvalidSetting):
        of_broker(mechanism, {name: f"an.other.LoginModule required {alice};"}, users={})
