"""SCRAM by the vectors of the RFCs, and against servers that are not what they should be."""

import hashlib

import pytest

from groupkeeper.security.mechanisms.mechanism import MechanismFailed
from groupkeeper.security.mechanisms.scram import HASH_BY_MECHANISM, ScramClient, new_nonce


async def started(mechanism: str = "SCRAM-SHA-256", username: str = "user") -> ScramClient:
    conversation = ScramClient(mechanism, username, "pencil", "rOprNGfwEbeRWgbNEkqO")
    await conversation.first()
    return conversation


async def test_the_vector_of_rfc_7677() -> None:
    conversation = ScramClient("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert await conversation.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    challenge = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert conversation.answer(challenge) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert conversation.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


async def test_the_vector_of_rfc_5802(monkeypatch: pytest.MonkeyPatch) -> None:
    # SHA-1 isn't one of Kafka's, but the vector goes through the same lines.
    monkeypatch.setitem(HASH_BY_MECHANISM, "SCRAM-SHA-1", "sha1")
    conversation = ScramClient("SCRAM-SHA-1", "user", "pencil", "fyko+d2lbbFgONRv9qkxdawL")
    await conversation.first()
    challenge = b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096"
    assert conversation.answer(challenge) == (
        b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
    )
    assert conversation.answer(b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=") is None


async def test_names_are_escaped_and_delegation_tokens_say_so() -> None:
    conversation = ScramClient("SCRAM-SHA-512", "a=b,c", "p", "nonce", (("tokenauth", "true"),))
    assert await conversation.first() == b"n,,n=a=3Db=2Cc,r=nonce,tokenauth=true"


@pytest.mark.parametrize(
    ("challenge", "says"),
    [
        (b"r=another,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4095", "4095 SCRAM iterations: 4096 to"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1000001", "1000001 SCRAM iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=99999999999999999999", "SCRAM iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==", "no SCRAM iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=%%%,i=4096", "malformed"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=,i=4096", "malformed"),
        (b"m=ext,r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "an unknown extension"),
        (b"", "malformed"),
        (b"\xff\xfe", "malformed"),
    ],
)
async def test_bad_challenges_are_refused(challenge: bytes, says: str) -> None:
    with pytest.raises(MechanismFailed, match=says):
        (await started()).answer(challenge)


@pytest.mark.parametrize(
    ("final", "says"),
    [
        (b"v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "signature is wrong"),
        (b"v=" + hashlib.sha256().hexdigest().encode(), "signature is wrong"),
        (b"", "malformed"),
        (b"v=", "malformed"),
        (b"e=invalid-proof", "refuses: invalid-proof"),
    ],
)
async def test_a_server_that_does_not_know_the_password_is_refused(final: bytes, says: str) -> None:
    conversation = await started()
    conversation.answer(b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    with pytest.raises(MechanismFailed, match=says):
        conversation.answer(final)


def test_nonces_differ() -> None:
    nonces = {new_nonce() for _ in range(100)}
    assert len(nonces) == 100
    assert all(len(nonce) >= 24 and "," not in nonce for nonce in nonces)
