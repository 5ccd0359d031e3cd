"""ACLs, passwords and quotas: what is made is what librdkafka's admin client then sees, and what brokers then do."""

from typing import Any

import pytest
from confluent_kafka.admin import AclBindingFilter, AdminClient, ResourcePatternType, ResourceType
from confluent_kafka.admin import AclOperation as TheirOperation
from confluent_kafka.admin import AclPermissionType as TheirPermission
from tests.conformance.client.admin.conftest import Target
from tests.conformance.client.admin.waiting import until

from groupkeeper import (
    Acl,
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    Admin,
    Broker,
    EntityName,
    QuotaEntity,
    ScramCredential,
    ScramMechanism,
    ScramPassword,
    ScramRemoval,
)
from groupkeeper.errors import (
    AuthenticationFailed,
    IllegalArgument,
    InvalidRequest,
    ResourceNotFound,
    SecurityDisabled,
    UnacceptableCredential,
)


async def test_acls(own: Admin, target: Target, name: str) -> None:
    read = Acl(f"User:{name}", AclOperation.READ, AclResourceType.TOPIC, "orders")
    deny = Acl(f"User:{name}", AclOperation.ALL, AclResourceType.GROUP, "bil", AclPatternType.PREFIXED,
               AclPermission.DENY, "10.0.0.1")  # fmt: skip
    wrong = read._replace(principal="nobody")
    made = await own.create_acls([read, deny, wrong])
    assert list(made.done) == [read, deny]
    assert isinstance(made.failed[wrong], InvalidRequest)
    assert list((await own.create_acls([read])).all()) == [read]

    of_user = AclFilter(principal=f"User:{name}")
    await until(lambda: own.describe_acls(of_user), lambda found: set(found) == {read, deny})
    assert await own.describe_acls(AclFilter(name="billing", pattern_type=AclPatternType.MATCH)) == [deny]
    assert deny in await own.describe_acls()
    unnamed: Any = None  # what its types leave out
    wanted = AclBindingFilter(
        ResourceType.ANY,
        unnamed,
        ResourcePatternType.ANY,
        f"User:{name}",
        unnamed,
        TheirOperation.ANY,
        TheirPermission.ANY,
    )
    librdkafka = AdminClient({"bootstrap.servers": target.bootstrap_servers})
    theirs = librdkafka.describe_acls(wanted).result(20)
    assert {
        (one.restype.name, one.name, one.resource_pattern_type.name, one.host, one.operation.name) for one in theirs
    } == {("TOPIC", "orders", "LITERAL", "*", "READ"), ("GROUP", "bil", "PREFIXED", "10.0.0.1", "ALL")}

    nothing = AclFilter(principal=f"User:{name}-missing")
    deleted = (await own.delete_acls([of_user._replace(operation=AclOperation.READ), nothing])).all()
    assert [list(each.all()) for each in deleted.values()] == [[read], []]
    await until(lambda: own.describe_acls(of_user), lambda found: found == [deny])
    (await own.delete_acls([of_user])).all()


async def test_acls_that_cannot_be(own: Admin) -> None:
    acl = Acl("User:a", AclOperation.READ, AclResourceType.TOPIC, "t")
    with pytest.raises(IllegalArgument, match="None and the pattern MATCH are for filters"):
        await own.create_acls([acl._replace(pattern_type=AclPatternType.MATCH)])
    with pytest.raises(IllegalArgument, match="there is no operation 'UNKNOWN'; there are ALL, READ, "):
        await own.create_acls([acl._replace(operation=AclOperation.UNKNOWN)])


async def test_without_an_authorizer() -> None:
    async with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        with pytest.raises(SecurityDisabled, match="No Authorizer is configured"):
            await admin.describe_acls()
        wanted = AclFilter()
        assert isinstance((await admin.delete_acls([wanted])).failed[wanted], SecurityDisabled)


async def test_passwords(own: Admin, target: Target, name: str) -> None:
    weak = ScramPassword("secret", ScramMechanism.SCRAM_SHA_256, iterations=100)
    altered = await own.alter_scram_users(
        {name: ScramPassword("secret"), f"{name}-weak": weak, f"{name}-missing": ScramRemoval(weak.mechanism)}
    )
    assert list(altered.done) == [name]
    assert isinstance(altered.failed[f"{name}-weak"], UnacceptableCredential)
    assert isinstance(altered.failed[f"{name}-missing"], ResourceNotFound)

    (await own.alter_scram_users({name: ScramPassword("secret", weak.mechanism, 4096)})).all()
    described = await until(
        lambda: own.describe_scram_users([name, f"{name}-missing"]), lambda found: len(found.done.get(name, ())) == 2
    )
    assert set(described.done[name]) == {
        ScramCredential(ScramMechanism.SCRAM_SHA_512, 8192),
        ScramCredential(ScramMechanism.SCRAM_SHA_256, 4096),
    }
    assert isinstance(described.failed[f"{name}-missing"], ResourceNotFound)
    assert name in (await own.describe_scram_users()).all()
    assert (await own.describe_scram_users([])).all() == {}

    (await own.alter_scram_users({name: ScramRemoval(ScramMechanism.SCRAM_SHA_256)})).all()
    await until(lambda: own.describe_scram_users([name]), lambda found: len(found.done[name]) == 1)
    with pytest.raises(IllegalArgument, match="there is no password mechanism 'UNKNOWN'; there are SCRAM-SHA-256"):
        await own.alter_scram_users({name: ScramRemoval(ScramMechanism.UNKNOWN)})
    assert "secret" not in repr(weak)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_password_that_was_set_lets_its_user_in(own: Admin, target: Target, name: str, mechanism: str) -> None:
    (await own.alter_scram_users({name: ScramPassword("sésame", ScramMechanism(mechanism))})).all()
    await until(lambda: own.describe_scram_users([name]), lambda found: name in found.done)

    def properties(password: str) -> dict[str, str]:
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{module} required username="{name}" password="{password}";',
        }

    async with Admin(target.logins, properties=properties("sésame")) as admin:
        assert (await admin.describe_cluster()).nodes
    with pytest.raises(AuthenticationFailed):
        await Admin.connect(target.logins, properties=properties("other"))


async def test_quotas(own: Admin, name: str) -> None:
    user, everyone = QuotaEntity(user=name), QuotaEntity(user=name, client_id=EntityName.DEFAULT)
    wrong = QuotaEntity(client_id=f"{name}-wrong")
    altered = await own.alter_client_quotas(
        {user: {"producer_byte_rate": 1e6, "consumer_byte_rate": 2.5e6}, everyone: {"request_percentage": 50},
         wrong: {"no_such_rate": 1}}
    )  # fmt: skip
    assert list(altered.done) == [user, everyone]
    assert isinstance(altered.failed[wrong], InvalidRequest)
    both = {user: {"producer_byte_rate": 1e6, "consumer_byte_rate": 2.5e6}, everyone: {"request_percentage": 50.0}}
    assert await until(lambda: own.describe_client_quotas(user), lambda found: len(found) == 2) == both
    assert list(await own.describe_client_quotas(user, strict=True)) == [user]
    assert list(await own.describe_client_quotas(everyone)) == [everyone]
    assert set(await own.describe_client_quotas(QuotaEntity(user=EntityName.ANY))) >= {user, everyone}
    assert set(await own.describe_client_quotas()) >= {user, everyone}

    (await own.alter_client_quotas({user: {"consumer_byte_rate": None}}, validate_only=True)).all()
    assert len((await own.describe_client_quotas(user))[user]) == 2
    (await own.alter_client_quotas({user: {"consumer_byte_rate": None}})).all()
    await until(lambda: own.describe_client_quotas(user), lambda found: list(found[user]) == ["producer_byte_rate"])
    with pytest.raises(IllegalArgument, match="a quota is for a user, a client id or an address"):
        await own.alter_client_quotas({QuotaEntity(user=EntityName.ANY): {"producer_byte_rate": 1}})
