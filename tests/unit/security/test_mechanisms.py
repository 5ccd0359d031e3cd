"""What the table of SASL mechanisms does not say by itself: modules, documents, and the samples of the tests."""

import hmac
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.client.sasl_broker import start
from tests.unit.security.logins import PASSWORD, SAMPLES, login_module, properties

from groupkeeper.client.admin.resources.access_types import ScramMechanism
from groupkeeper.client.security.sasl import sasl_security
from groupkeeper.client.security.transport import Security
from groupkeeper.security import mechanisms
from groupkeeper.security.jaas import parse_jaas
from groupkeeper.security.mechanisms import MECHANISMS
from groupkeeper.security.mechanisms.mechanism import (
    ClientConversation,
    ClientLogin,
    LoginFailed,
    LoginModule,
    LoginRefused,
    MechanismFailed,
)
from groupkeeper.security.mechanisms.scram import HASH_BY_MECHANISM, new_credential

ROOT = Path(__file__).resolve().parents[3]
USERS_MECHANISMS = [each.name for each in MECHANISMS.values() if each.has_users]
FAMILIES = ", ".join(dict.fromkeys(each.family or each.name for each in MECHANISMS.values()))


def test_each_module_is_in_the_table() -> None:
    used = {function.__module__ for each in MECHANISMS.values() for function in (each.client, each.server)}
    there = {f"{mechanisms.__name__}.{path.stem}" for path in Path(mechanisms.__path__[0]).glob("*.py")}
    common = {f"{mechanisms.__name__}.{name}" for name in ("__init__", "mechanism")}
    assert used == there - common, "MECHANISMS of security/mechanisms/__init__.py"


def test_each_mechanism_has_a_sample_login() -> None:
    assert SAMPLES.keys() == MECHANISMS.keys(), "SAMPLES of tests/unit/security/logins.py"
    trusting = [each.name for each in MECHANISMS.values() if each.needs and not SAMPLES[each.name].wrong]
    assert trusting == [], "with what a client needs something can be wrong: `wrong` of its sample"


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name != "OAUTHBEARER"])  # its options make a token
async def test_clients_read_their_options_with_the_settings_and_send_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "urandom", bytes)
    mechanism = MECHANISMS[name]
    sample = parse_jaas(login_module(name, SAMPLES[name].client)).options
    given = {option: sample[option] for option in mechanism.needs}
    late = "the options are read for each login: `client` of the mechanism reads them before it returns"

    def begin(options: dict[str, str]) -> Callable[[], ClientConversation]:
        modules = [LoginModule(mechanism.class_name, options)]
        login = ClientLogin(mechanism, lambda: modules[0] if modules else pytest.fail(late), pytest.fail)
        begun = mechanism.client(login)
        modules.clear()
        return begun

    plain = await begin(given)().first()
    for option in ("", *mechanism.options):
        first = await begin(given | ({option: "true"} if option else {}))().first()
        assert option or first == plain, "first messages differ by chance: fix it, as os.urandom above"
        assert not option or first != plain, f"the client does not send {option}"


async def challenges(name: str, options: str | None = None) -> list[bytes]:
    """What the broker answers to a client with these options, or those of the sample, until it refuses."""
    client = sasl_security(Security(), properties(name, options), None).begin()
    server, said = start(name, PASSWORD)(), list[bytes]()
    message: bytes | None = await client.first()
    reason = ""
    try:
        while message is not None:
            said.append(await server.answer(message))
            message = client.answer(said[-1])
    except (LoginFailed, LoginRefused, MechanismFailed) as refused:
        reason = str(refused)
    assert not re.search(f"guess|{re.escape(PASSWORD)}", reason), "a refusal is logged, and tells no password"
    assert bool(reason) == (server.identity is None), "`identity` is set before the last answer, and only then"
    return said


@pytest.mark.parametrize("name", USERS_MECHANISMS)
async def test_time_tells_nobody_a_password_or_whether_a_user_is_known(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared, compare = list[bytes](), hmac.compare_digest

    def counted(one: bytes, other: bytes) -> bool:
        compared.append(one)
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    wrong_password, unknown_user, *_ = SAMPLES[name].wrong
    await challenges(name, wrong_password)
    assert compared, "what proves a password is compared by hmac.compare_digest"
    of_a_known_user = len(compared)
    await challenges(name, unknown_user)
    is_told = MECHANISMS[name].family == "SCRAM"  # by its first message, as Kafka does
    assert is_told or len(compared) == 2 * of_a_known_user, "what an unknown user sends is compared, too"


@pytest.mark.parametrize("name", USERS_MECHANISMS)
async def test_challenges_are_of_os_urandom_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", bytes)
    assert await challenges(name) == await challenges(name), "a nonce is of os.urandom (`new_nonce` of scram.py)"


@pytest.mark.parametrize("salt", [b"", b"salt"])  # AlterUserScramCredentials takes both
def test_a_credential_is_made_anew_from_its_salt_and_password(salt: bytes) -> None:
    first = new_credential("SCRAM-SHA-256", "right", salt=salt)
    assert first.salt == salt
    assert new_credential("SCRAM-SHA-256", "right", first.iterations, first.salt) == first
    assert new_credential("SCRAM-SHA-256", "wrong", first.iterations, first.salt) != first


def test_the_codes_of_scram_are_kafkas() -> None:
    assert list(HASH_BY_MECHANISM)[:2] == ["SCRAM-SHA-256", "SCRAM-SHA-512"], "their places are Kafka's codes"
    assert ["UNKNOWN", *HASH_BY_MECHANISM] == list(ScramMechanism), (
        "ScramMechanism of client/admin/resources/access_types.py; the place in HASH_BY_MECHANISM is Kafka's code"
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("page", ["security.md", "broker-security.md"])
def test_documents_name_each_mechanism(page: str, mechanism: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    assert re.search(rf"(?<!User:)\b{mechanism}\b(?!-)", text), f"docs/{page} says how one logs in by {mechanism}"


def test_each_family_has_a_login_module_that_clients_are_told() -> None:
    modules = {each.family or each.name: each.class_name for each in MECHANISMS.values()}
    assert len({*modules.values()}) == len(modules), (
        "two mechanisms with one login module: a JAAS file is read by its class, so each has its own"
    )
    text = (ROOT / "docs/security.md").read_text()
    assert [name for name in modules.values() if f"{name} " not in text] == [], "docs/security.md: how a client logs in"


def test_documents_list_the_mechanisms() -> None:
    assert f"SASL ({FAMILIES})" in (ROOT / "README.md").read_text(), f"README.md: SASL ({FAMILIES})"
    *most, last = USERS_MECHANISMS
    sentence = f"clients log in by {', '.join(most)} or {last}"
    assert sentence in (ROOT / "docs/broker-security.md").read_text(), f"docs/broker-security.md: {sentence}"
