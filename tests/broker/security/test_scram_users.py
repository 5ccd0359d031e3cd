"""SCRAM credentials over the wire, and logins by them."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from tests.broker.conftest import Connect, Wire
from tests.broker.security.logins import log_in, log_in_by_scram

from groupkeeper.broker import Broker
from groupkeeper.protocol import messages as m

SHA_256, SHA_512 = 1, 2
USERS = {"admin": "admin-secret"}
TOO_FEW = "Too few iterations"


def upsertion(name: str, mechanism: int = SHA_256, iterations: int = 4096, password: str = "p") -> Any:
    kind = "sha512" if mechanism == SHA_512 else "sha256"
    salted = hashlib.pbkdf2_hmac(kind, password.encode(), b"salt", iterations or 1)
    return m.ScramCredentialUpsertion(name, mechanism, iterations, b"salt", salted)


async def altered(wire: Wire, deletions: Any = (), upsertions: Any = ()) -> dict[str, tuple[int, str | None]]:
    answer = await wire.call(m.AlterUserScramCredentialsRequest(deletions, upsertions), 0)
    return {one.user: (one.error_code, one.error_message) for one in answer.results}


async def described(wire: Wire, *users: str) -> dict[str, Any]:
    answer = await wire.call(m.DescribeUserScramCredentialsRequest([m.UserName(user) for user in users] or None), 0)
    assert (answer.error_code, answer.error_message) == (0, "")
    return {
        one.user: one.error_message or [(info.mechanism, info.iterations) for info in one.credential_infos]
        for one in answer.results
    }


async def test_from_the_first_login_to_the_last(connect: Connect, tmp_path: Path) -> None:
    async with Broker(users=USERS, directory=tmp_path) as broker:
        wire = await connect(broker)
        assert (await log_in(wire, "admin", "admin-secret")).error_code == 0
        found = await altered(wire, (), [upsertion("bob"), upsertion("eve", SHA_512, 8192)])
        assert found == {"bob": (0, None), "eve": (0, None)}
        assert await described(wire, "bob", "eve", "bob", "zoe") == {
            "bob": "Cannot describe SCRAM credentials for the same user twice in a single request: bob",
            "eve": [(SHA_512, 8192)],
            "zoe": "Attempt to describe a user credential that does not exist: zoe",
        }
        assert set(await described(wire)) == {"admin", "bob", "eve"}
        assert (await log_in_by_scram(await connect(broker), "SCRAM-SHA-256", "bob", "p")).error_code == 0
    async with Broker(users=USERS, directory=tmp_path) as broker:
        wire = await connect(broker)
        assert (await log_in_by_scram(wire, "SCRAM-SHA-512", "eve", "p")).error_code == 0
        assert await altered(wire, [m.ScramCredentialDeletion("bob", SHA_256)]) == {"bob": (0, None)}
        assert (await log_in_by_scram(await connect(broker), "SCRAM-SHA-256", "bob", "p")).error_code == 58


async def test_refusals(connect: Connect) -> None:
    async with Broker(users=USERS) as broker:
        wire = await connect(broker)
        await log_in(wire, "admin", "admin-secret")
        twice = (92, "A user credential cannot be altered twice in the same request")
        deletions = [m.ScramCredentialDeletion("nobody", SHA_256), m.ScramCredentialDeletion("admin", SHA_256)]
        upsertions = [
            upsertion("admin"),
            upsertion(""),
            upsertion("few", iterations=4095),
            upsertion("many", iterations=16385),
            upsertion("odd", mechanism=7),
            upsertion("fine"),
        ]
        assert await altered(wire, deletions, upsertions) == {
            "nobody": (91, "Attempt to delete a user credential that does not exist"),
            "admin": twice,
            "": (93, "Username must not be empty"),
            "few": (93, TOO_FEW),
            "many": (93, "Too many iterations"),
            "odd": (33, "Unknown SCRAM mechanism"),
            "fine": (0, None),
        }
        assert set(await described(wire)) == {"admin", "fine"}


@pytest.mark.parametrize("level", [{"feature.metadata.version": "10"}, {"conformance.metadata.version": "3.4-IV0"}])
async def test_metadata_of_before_scram(connect: Connect, level: dict[str, str]) -> None:
    async with Broker(properties=level) as broker:
        wire = await connect(broker)
        too_old = (35, "The current metadata.version does not support SCRAM")
        asked = [upsertion("a"), upsertion("b"), upsertion("b")]
        found = await altered(wire, [m.ScramCredentialDeletion("c", SHA_256)], asked)
        assert found == dict.fromkeys("abc", too_old)


async def test_who_may_not(connect: Connect) -> None:
    settings = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    async with Broker(users=USERS, properties=settings) as broker:
        wire = await connect(broker)
        await log_in(wire, "admin", "admin-secret")
        assert [code for code, _ in (await altered(wire, (), [upsertion("bob")])).values()] == [31]
        assert (await wire.call(m.DescribeUserScramCredentialsRequest(None), 0)).error_code == 31
