"""Listeners with TLS: certificates of both sides, by each form of store, and how they change while the broker runs."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.conftest import Connect, Wire
from tests.broker.security.logins import log_in
from tests.unit.client.certificates import Certified, certified, trust_pkcs12

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker import Broker
from groupkeeper.client.admin import Admin
from groupkeeper.client.errors import TlsFailed
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.framing import encode_request

HERE: dict[str, Any] = {"hosts": ("localhost",), "addresses": ("127.0.0.1",)}
DEADLINE_S = 20


class Authority:
    """A CA, and files that the broker reads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = certified("CA")
        self.store = folder / "broker.pem"
        self.renew(self.ca)
        (folder / "ca.pem").write_text(self.ca.pem)

    def renew(self, ca: Certified) -> None:
        own = certified("broker", ca, **HERE)
        fresh = self.folder / "fresh.pem"
        fresh.write_text(own.key_pem() + own.pem)
        fresh.replace(self.store)

    def settings(self, **more: str) -> dict[str, str]:
        return {
            "listeners": "SECURE://127.0.0.1:0,OPEN://127.0.0.1:0",
            "listener.security.protocol.map": "SECURE:SSL,OPEN:PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "ca.pem"),
            "groupkeeper.authentication.timeout.ms": "10000",
            **{name.replace("_", "."): text for name, text in more.items()},
        }

    def context(self, ca: Certified | None = None, own: Certified | None = None) -> ssl.SSLContext:
        """A client's."""
        context = ssl.create_default_context(cadata=(ca or self.ca).pem)
        if own is not None:
            path = self.folder / "client.pem"
            path.write_text(own.key_pem() + own.pem)
            context.load_cert_chain(path)
        return context


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def open_tls(broker: Broker, context: ssl.SSLContext) -> Wire:
    host, port = broker.bootstrap_servers.rsplit(":", 1)
    return Wire(*await asyncio.open_connection(host, int(port), ssl=context))


async def principal(broker: Broker, context: ssl.SSLContext) -> str:
    wire = await open_tls(broker, context)
    assert (await wire.call(m.ListGroupsRequest(), 4)).error_code == 0
    (connection,) = [one for one in broker.server.connections if one.security_protocol != "PLAINTEXT"]
    wire.writer.close()
    found = connection.identity.principal
    async with asyncio.timeout(DEADLINE_S):
        while broker.server.connections:  # noqa: ASYNC110
            await asyncio.sleep(0)
    return found


@pytest.fixture
async def broker(authority: Authority) -> AsyncIterator[Broker]:
    async with Broker(properties=authority.settings()) as started:
        yield started


async def test_pem(authority: Authority, broker: Broker) -> None:
    assert await principal(broker, authority.context()) == "User:ANONYMOUS"


async def test_a_certificate_that_is_not_asked_for(authority: Authority, broker: Broker) -> None:
    own = certified("client", authority.ca)
    assert await principal(broker, authority.context(own=own)) == "User:ANONYMOUS"


async def test_a_certificate_that_no_rule_is_about_gets_nothing_done(authority: Authority) -> None:
    """Also what is sent together with the end of the handshake."""
    settings = authority.settings(ssl_client_auth="required", ssl_principal_mapping_rules="RULE:^CN=admin$/admin/")
    async with Broker(properties=settings) as broker:
        context = authority.context(own=certified("client", authority.ca))
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        handshake = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        host, port = broker.bootstrap_servers.rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port))
        while True:
            try:
                handshake.do_handshake()
                break
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
                incoming.write(await reader.read(65536))
        wanted = m.MetadataRequest([m.MetadataRequestTopic(name="made-by-nobody")], allow_auto_topic_creation=True)
        handshake.write(encode_request(1, "c", wanted, 8))
        writer.write(outgoing.read())
        async with asyncio.timeout(DEADLINE_S):
            while not is_over(handshake):
                incoming.write(await reader.read(65536))
        writer.close()
        assert list(broker.topics.names()) == []


def is_over(conversation: ssl.SSLObject) -> bool:
    """Whether the other side has said good-bye."""
    try:
        return not conversation.read(65536)
    except ssl.SSLWantReadError:
        return False
    except ssl.SSLZeroReturnError:
        return True


async def test_each_listener_tells_its_own_address(authority: Authority) -> None:
    settings = authority.settings(advertised_listeners="SECURE://localhost:0,OPEN://127.0.0.1:0")
    async with Broker(properties=settings) as broker:
        opened = broker.endpoint("OPEN")
        secured = broker.endpoint("SECURE")
        assert (secured.host, opened.host) == ("localhost", "127.0.0.1")
        assert secured.port != opened.port
        by_open = await Wire.open(f"127.0.0.1:{opened.port}")
        by_tls = await open_tls(broker, authority.context())
        for wire, endpoint in ((by_open, opened), (by_tls, secured)):
            answer = await wire.call(m.MetadataRequest([]), 9)
            assert [(one.host, one.port) for one in answer.brokers] == [(endpoint.host, endpoint.port)]
            wire.writer.close()


@pytest.mark.parametrize("form", ["PKCS12", "JKS", "text"])
async def test_other_forms_of_stores(authority: Authority, form: str) -> None:
    own, ca = certified("broker", authority.ca, **HERE), authority.ca
    settings = authority.settings(ssl_client_auth="required")
    if form == "text":
        del settings["ssl.keystore.location"], settings["ssl.truststore.location"]
        settings |= {"ssl.keystore.key": own.key_pem("hush"), "ssl.keystore.certificate.chain": own.pem}
        settings |= {"ssl.key.password": "hush", "ssl.truststore.certificates": ca.pem}
    else:
        (authority.folder / "own.p12").write_bytes(own.pkcs12("own-secret", ca))
        (authority.folder / "trust.p12").write_bytes(trust_pkcs12("trust-secret", ca))
        settings |= {"ssl.keystore.type": form, "ssl.keystore.location": str(authority.folder / "own.p12")}
        settings |= {"ssl.truststore.type": form, "ssl.truststore.location": str(authority.folder / "trust.p12")}
        settings |= {"ssl.keystore.password": "own-secret", "ssl.truststore.password": "trust-secret"}
    async with Broker(properties=settings) as broker:
        client = certified("client", ca)
        assert await principal(broker, authority.context(own=client)) == "User:CN=client"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("DEFAULT", "User:CN=Client One"),
        ("RULE:^CN=(.*) (.*)$/$2.$1/L", "User:one.client"),
        ("RULE:^OU=(.*)$/$1/,RULE:^CN=(.*?)$/$1@x/U,DEFAULT", "User:CLIENT ONE@X"),
    ],
)
async def test_principals(authority: Authority, rules: str, expected: str) -> None:
    settings = authority.settings(ssl_client_auth="required")
    settings["listener.name.secure.ssl.principal.mapping.rules"] = rules
    async with Broker(properties=settings) as broker:
        client = certified("Client One", authority.ca)
        assert await principal(broker, authority.context(own=client)) == expected


async def test_no_rule_applies(authority: Authority) -> None:
    settings = authority.settings(ssl_client_auth="required", ssl_principal_mapping_rules="RULE:^OU=(.*)$/$1/")
    async with Broker(properties=settings) as broker:
        wire = await open_tls(broker, authority.context(own=certified("client", authority.ca)))
        assert not await wire.reader.read(1)


async def test_a_certificate_is_required(authority: Authority) -> None:
    async with Broker(properties=authority.settings(ssl_client_auth="required")) as broker:
        for own in (None, certified("client", certified("another CA")), certified("client", authority.ca, last_day=0)):
            with pytest.raises((ssl.SSLError, OSError, asyncio.IncompleteReadError)):
                await principal(broker, authority.context(own=own))


async def test_a_certificate_is_wished_for(authority: Authority) -> None:
    async with Broker(properties=authority.settings(ssl_client_auth="requested")) as broker:
        assert await principal(broker, authority.context()) == "User:ANONYMOUS"
        assert await principal(broker, authority.context(own=certified("client", authority.ca))) == "User:CN=client"


async def test_versions_of_tls(authority: Authority) -> None:
    async with Broker(properties=authority.settings(ssl_enabled_protocols="TLSv1.2")) as broker:
        wire = await open_tls(broker, authority.context())
        assert wire.writer.get_extra_info("ssl_object").version() == "TLSv1.2"
        wire.writer.close()
        newest = authority.context()
        newest.minimum_version = ssl.TLSVersion.TLSv1_3
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await open_tls(broker, newest)


async def test_sasl_over_tls(authority: Authority) -> None:
    settings = authority.settings(listener_security_protocol_map="SECURE:SASL_SSL,OPEN:PLAINTEXT")
    # For SASL listeners the setting of all listeners counts as none (KIP-684).
    async with Broker(properties={**settings, "ssl.client.auth": "required"}, users={"alice": "a"}) as broker:
        wire = await open_tls(broker, authority.context())
        assert (await log_in(wire, "alice", "a")).error_code == 0
        assert (await wire.call(m.ListGroupsRequest(), 4)).error_code == 0
        wire.writer.close()


async def test_a_client_without_tls(authority: Authority, broker: Broker, connect: Connect) -> None:
    wire = await connect(broker)
    wire.send(m.MetadataRequest([]), 9)
    assert len(await wire.reader.read()) < 20  # an alert at most


async def test_a_handshake_that_does_not_end(authority: Authority, connect: Connect) -> None:
    settings = authority.settings(groupkeeper_authentication_timeout_ms="100")
    async with Broker(properties=settings) as broker:
        wire = await connect(broker)
        wire.writer.write(b"\x16\x03")
        async with asyncio.timeout(DEADLINE_S):
            assert not await wire.reader.read(1)


async def is_trusted(broker: Broker, context: ssl.SSLContext) -> bool:
    try:
        wire = await open_tls(broker, context)
    except ssl.SSLCertVerificationError:
        return False
    wire.writer.close()
    return True


async def test_a_store_that_changes_is_read_again(authority: Authority) -> None:
    other = certified("other CA")
    async with Broker(properties=authority.settings(groupkeeper_tls_check_interval_ms="20")) as broker:
        before = await open_tls(broker, authority.context())
        authority.store.write_text("half written")
        assert await is_trusted(broker, authority.context())
        authority.renew(other)
        async with asyncio.timeout(DEADLINE_S):
            while not await is_trusted(broker, authority.context(other)):
                pass
        assert not await is_trusted(broker, authority.context())
        assert (await before.call(m.ListGroupsRequest(), 4)).error_code == 0
        before.writer.close()


async def alter(broker: Broker, name: str, value: str) -> tuple[int, str | None]:
    wire = await Wire.open(f"127.0.0.1:{broker.endpoint('OPEN').port}")
    answer = await wire.alter(4, str(broker.config.node_id), name, value)
    wire.writer.close()
    return answer


async def test_another_store_by_a_client(authority: Authority, broker: Broker) -> None:
    other = certified("other CA")
    own = certified("broker", other, **HERE)
    path = authority.folder / "other.pem"
    name = "listener.name.secure.ssl.keystore.location"
    told = f"listener SECURE: ssl.keystore.location={path}: there is no such file"
    assert await alter(broker, name, str(path)) == (42, told)
    path.write_text(own.key_pem() + own.pem)
    assert await is_trusted(broker, authority.context())
    assert await alter(broker, name, str(path)) == (0, None)
    async with asyncio.timeout(DEADLINE_S):
        while not await is_trusted(broker, authority.context(other)):
            pass


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"ssl.keystore.location": ""}, "listener SECURE: TLS needs a certificate: set ssl.keystore.location"),
        ({"ssl.keystore.location": "none.pem"}, "listener SECURE: ssl.keystore.location=none.pem: there is no such"),
        ({"ssl.truststore.location": "none", "ssl.client.auth": "required"}, "ssl.truststore.location=none"),
        ({"ssl.client.auth": "maybe"}, "Invalid value maybe for configuration ssl.client.auth"),
        ({"ssl.enabled.protocols": "SSLv3"}, "listener SECURE: ssl.enabled.protocols=SSLv3"),
        ({"ssl.principal.mapping.rules": "RULE:^CN=(.*$/$1/"}, "ssl.principal.mapping.rules"),
    ],
)
async def test_settings_that_make_no_sense(authority: Authority, changes: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        await Broker(properties={**authority.settings(), **changes}).start()
    assert says in str(caught.value)


@pytest.mark.parametrize("users", [{}, {"alice": 'a"\\secret'}])
async def test_a_throwaway_authority(users: dict[str, str], tmp_path: Path) -> None:
    for _ in range(2):  # the second time with the certificates that are there
        async with Broker(directory=tmp_path, users=users, tls=True) as broker:
            properties = broker.client_properties("alice" if users else "")
            async with Admin(broker.bootstrap_servers, properties=properties) as admin:
                assert not (await admin.list_groups()).failed
            with pytest.raises(TlsFailed):
                async with Admin(broker.bootstrap_servers, properties={"security.protocol": "SSL"}):
                    pass
    assert (tmp_path / "tls/broker.pem").stat().st_mode & 0o077 == 0
