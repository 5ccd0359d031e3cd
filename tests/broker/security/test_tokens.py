"""Delegation tokens: who gets one, logins by it, and its end."""

import base64
from pathlib import Path
from typing import Any

from tests.broker.conftest import Connect, Wire
from tests.broker.security.logins import USERS, log_in_by_scram, logged_in

from groupkeeper.broker import Broker
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import UnsupportedVersion

SETTINGS = {
    "delegation.token.secret.key": "a long secret of the cluster",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}
DISABLED, NOT_FOUND, MISMATCH, NOT_ALLOWED, UNAUTHORIZED, EXPIRED, BAD_TYPE = 61, 62, 63, 64, 65, 66, 67
DAY_MS = 86_400_000


async def log_in_by_token(wire: Wire, made: Any, mechanism: str = "SCRAM-SHA-256") -> Any:
    password = base64.b64encode(made.hmac).decode()
    return await log_in_by_scram(wire, mechanism, made.token_id, password, (("tokenauth", "true"),))


async def create(wire: Wire, *, owner: str = "", renewers: tuple[str, ...] = (), lifetime_ms: int = -1) -> Any:
    names = [m.CreatableRenewers("User", name) for name in renewers]
    return await wire.call(m.CreateDelegationTokenRequest("User" if owner else "", owner, names, lifetime_ms), 3)


async def described(wire: Wire, *owners: str) -> list[tuple[str, str]]:
    wanted = [m.DescribeDelegationTokenOwner("User", owner) for owner in owners] or None
    answer = await wire.call(m.DescribeDelegationTokenRequest(wanted), 3)
    assert answer.error_code == 0
    return [(one.token_id, one.principal_name) for one in answer.tokens]


async def test_from_its_creation_to_its_end(connect: Connect, tmp_path: Path) -> None:
    async with Broker(properties=SETTINGS, users=USERS, directory=tmp_path) as broker:
        alice, bob = [await logged_in(connect, broker, user) for user in ("alice", "bob")]
        made = await create(alice, renewers=("bob",))
        assert made.error_code == 0
        assert (made.principal_name, made.token_requester_principal_name) == ("alice", "alice")
        assert made.expiry_timestamp_ms - made.issue_timestamp_ms == DAY_MS
        assert made.max_timestamp_ms - made.issue_timestamp_ms == 7 * DAY_MS
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            wire = await connect(broker)
            answer = await log_in_by_token(wire, made, mechanism)
            assert answer.error_code == 0
            assert 0 < answer.session_lifetime_ms <= DAY_MS
            (identity,) = {one.identity for one in broker.server.connections if one.identity.is_by_token}
            assert identity.principal == "User:alice"
            assert (await create(wire)).error_code == NOT_ALLOWED
            wire.writer.close()
            while any(one.identity.is_by_token for one in broker.server.connections):
                assert (await alice.call(m.ListGroupsRequest(), 4)).error_code == 0
        renewed = await bob.call(m.RenewDelegationTokenRequest(made.hmac, 1000), 2)
        assert renewed.error_code == 0
        assert renewed.expiry_timestamp_ms < made.expiry_timestamp_ms
        await bob.call(m.RenewDelegationTokenRequest(made.hmac, -1), 2)
    async with Broker(properties=SETTINGS, users=USERS, directory=tmp_path) as broker:
        alice, bob = [await logged_in(connect, broker, user) for user in ("alice", "bob")]
        assert await described(bob) == [(made.token_id, "alice")]
        assert await described(bob, "bob") == [(made.token_id, "alice")]
        assert await described(alice, "zoe") == []
        assert (await log_in_by_token(await connect(broker), made)).error_code == 0
        ended = await alice.call(m.ExpireDelegationTokenRequest(made.hmac, -1), 2)
        assert ended.error_code == 0
        assert ended.expiry_timestamp_ms < broker.now_ms()
        assert await described(alice) == []
        assert (await log_in_by_token(await connect(broker), made)).error_code == 58
        assert (await alice.call(m.RenewDelegationTokenRequest(made.hmac, -1), 2)).error_code == NOT_FOUND
    assert made.hmac.hex().encode() not in (tmp_path / "tokens.journal").read_bytes()
    assert base64.b64encode(made.hmac) not in (tmp_path / "tokens.journal").read_bytes()


async def test_its_time_is_over(connect: Connect) -> None:
    async with Broker(properties=SETTINGS, users=USERS) as broker:
        alice = await logged_in(connect, broker, "alice")
        made = await create(alice, lifetime_ms=1)
        assert made.max_timestamp_ms == made.expiry_timestamp_ms == made.issue_timestamp_ms + 1
        while broker.now_ms() <= made.max_timestamp_ms:
            assert (await alice.call(m.ListGroupsRequest(), 4)).error_code == 0
        assert (await log_in_by_token(await connect(broker), made)).error_code == 58
        assert (await alice.call(m.RenewDelegationTokenRequest(made.hmac, -1), 2)).error_code == EXPIRED
        assert (await alice.call(m.ExpireDelegationTokenRequest(made.hmac, 5), 2)).error_code == EXPIRED
        # It is listed until expired ones are looked for.
        assert len(await described(alice)) == 1
    settings = {**SETTINGS, "delegation.token.expiry.check.interval.ms": "1"}
    async with Broker(properties=settings, users=USERS) as broker:
        alice = await logged_in(connect, broker, "alice")
        made = await create(alice, lifetime_ms=1)
        while await described(alice):
            pass
        assert (await alice.call(m.RenewDelegationTokenRequest(made.hmac, -1), 2)).error_code == NOT_FOUND


async def test_how_long_it_may_live(connect: Connect) -> None:
    settings = {**SETTINGS, "delegation.token.max.lifetime.ms": "600000", "delegation.token.expiry.time.ms": "200000"}
    async with Broker(properties=settings, users=USERS) as broker:
        alice = await logged_in(connect, broker, "alice")
        for asked_ms in (-1, 700_000):
            made = await create(alice, lifetime_ms=asked_ms)
            assert made.max_timestamp_ms - made.issue_timestamp_ms == 600_000
            assert made.expiry_timestamp_ms - made.issue_timestamp_ms == 200_000
        renewed = await alice.call(m.RenewDelegationTokenRequest(made.hmac, 300_000), 2)
        assert renewed.expiry_timestamp_ms - broker.now_ms() <= 200_000


async def test_who_may_not(connect: Connect) -> None:
    async with Broker(properties=SETTINGS, users=USERS) as broker:
        admin, alice, bob = [await logged_in(connect, broker, user) for user in USERS]
        assert (await create(alice, owner="bob")).error_code == UNAUTHORIZED
        made = await create(admin, owner="bob")
        assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (0, "bob", "admin")
        assert await described(alice) == []
        assert await described(bob) == await described(admin) == [(made.token_id, "bob")]
        assert (await alice.call(m.RenewDelegationTokenRequest(made.hmac, -1), 2)).error_code == MISMATCH
        assert (await alice.call(m.ExpireDelegationTokenRequest(made.hmac, -1), 2)).error_code == MISMATCH
        odd = m.CreateDelegationTokenRequest("", "", [m.CreatableRenewers("Group", "g")], -1)
        assert (await alice.call(odd, 3)).error_code == BAD_TYPE


async def test_without_a_secret(connect: Connect) -> None:
    async with Broker(users=USERS) as broker:
        alice = await logged_in(connect, broker, "alice")
        assert (await create(alice)).error_code == DISABLED
        assert (await alice.call(m.DescribeDelegationTokenRequest(None), 3)).error_code == DISABLED


async def test_metadata_of_before_tokens(connect: Connect) -> None:
    async with Broker(users=USERS, properties={**SETTINGS, "feature.metadata.version": "13"}) as broker:
        alice = await logged_in(connect, broker, "alice")
        assert (await create(alice)).error_code == UnsupportedVersion.code
        assert (await alice.call(m.RenewDelegationTokenRequest(b"x", 1), 2)).error_code == UnsupportedVersion.code
        assert await described(alice) == []
