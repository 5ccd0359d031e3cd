"""TLS over TCP with a scripted broker, and what is said when it fails."""

import asyncio
import contextlib
import socket
import ssl
import threading
from pathlib import Path
from typing import Self

import pytest
from tests.unit.client.certificates import Certified, certified, trust_pkcs12
from tests.unit.client.sasl_broker import SaslBroker, start
from tests.unit.client.scripted_broker import ScriptedBroker

from groupkeeper.client.admin import Admin
from groupkeeper.client.errors import AuthenticationFailed, ClientError, ConnectionFailed, TlsFailed, UnexpectedResponse
from groupkeeper.client.security.tls import tls_context
from groupkeeper.security.tls import openssl_suite


@pytest.fixture(scope="module")
def ca() -> Certified:
    return certified("the CA")


@pytest.fixture(scope="module")
def broker_certificate(ca: Certified) -> Certified:
    return certified("broker", ca, hosts=("localhost",), addresses=("127.0.0.1",))


@pytest.fixture
def trusting(ca: Certified) -> dict[str, str]:
    """The properties of a client that trusts the CA."""
    return {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": ca.pem.replace("\n", " "),
        "default.api.timeout.ms": "10000",
    }


SASL = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": 'PlainLoginModule required username="alice" password="hush";'}


class AlertingServer:
    """Does TLS handshakes and says why when it refuses one, which asyncio's servers don't."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            accepted.settimeout(30)
            with accepted, contextlib.suppress(OSError):
                self._context.wrap_socket(accepted, server_side=True).close()


async def refused(server: AlertingServer, properties: dict[str, str], kind: type[ClientError]) -> str:
    """What the client says at once."""
    async with asyncio.timeout(30):
        with pytest.raises(kind) as caught:
            async with Admin(f"127.0.0.1:{server.port}", properties=properties):
                pass
    return str(caught.value)


async def connects(broker: ScriptedBroker, properties: dict[str, str]) -> None:
    async with broker, asyncio.timeout(10):
        assert await cluster_id(broker, properties) == "scripted"


async def cluster_id(broker: ScriptedBroker, properties: dict[str, str]) -> str | None:
    async with Admin(broker.bootstrap_servers, properties=properties) as admin:
        return (await admin.describe_cluster()).cluster_id


async def fails(broker: ScriptedBroker, properties: dict[str, str], kind: type[ClientError] = TlsFailed) -> str:
    """What the client says; TlsFailed must come at once."""
    async with broker, asyncio.timeout(10):
        with pytest.raises(kind) as caught:
            await cluster_id(broker, properties)
    text = str(caught.value)
    assert "\n" not in text
    return text


def tls_broker(certificate: Certified, folder: Path, client_ca: Certified | None = None) -> ScriptedBroker:
    return ScriptedBroker(tls=certificate.context(folder, client_ca), ranges={"DescribeCluster": None})


@pytest.mark.parametrize("versions", ["TLSv1.2", "TLSv1.3", "TLSv1.2,TLSv1.3"])
async def test_a_trusted_broker(
    versions: str, broker_certificate: Certified, trusting: dict[str, str], tmp_path: Path
) -> None:
    await connects(tls_broker(broker_certificate, tmp_path), {**trusting, "ssl.enabled.protocols": versions})


@pytest.mark.parametrize("form", ["PEM", "PKCS12", "JKS"])
async def test_trust_stores(
    form: str, ca: Certified, broker_certificate: Certified, trusting: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "trust"
    path.write_bytes(ca.pem.encode() if form == "PEM" else trust_pkcs12("hush", ca))
    properties = {"security.protocol": "SSL", "ssl.truststore.location": str(path), "ssl.truststore.type": form}
    if form != "PEM":
        properties["ssl.truststore.password"] = "hush"  # as in Java, a PKCS12 store may be called JKS
    await connects(tls_broker(broker_certificate, tmp_path), properties)


async def test_a_broker_that_is_trusted_itself(broker_certificate: Certified, tmp_path: Path) -> None:
    properties = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": broker_certificate.pem,
    }
    await connects(tls_broker(broker_certificate, tmp_path), properties)


@pytest.mark.parametrize("form", ["properties", "PEM", "encrypted PEM", "PKCS12"])
async def test_a_certificate_of_the_client(
    form: str, ca: Certified, broker_certificate: Certified, trusting: dict[str, str], tmp_path: Path
) -> None:
    own = certified("client", ca)
    path = tmp_path / "own"
    properties = {**trusting, "ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}
    if form == "properties":
        del properties["ssl.keystore.location"]
        properties |= {"ssl.keystore.key": own.key_pem("hush"), "ssl.keystore.certificate.chain": own.pem + ca.pem}
        properties["ssl.key.password"] = "hush"
    elif form == "PEM":
        path.write_text(own.pem + own.key_pem())
    elif form == "encrypted PEM":
        path.write_text(own.key_pem("hush") + own.pem)
        properties["ssl.key.password"] = "hush"
    else:
        path.write_bytes(own.pkcs12("hush", ca))
        properties |= {"ssl.keystore.type": "PKCS12", "ssl.keystore.password": "hush"}
    await connects(tls_broker(broker_certificate, tmp_path, ca), properties)


async def test_sasl_over_tls(broker_certificate: Certified, trusting: dict[str, str], tmp_path: Path) -> None:
    properties = {**trusting, "security.protocol": "SASL_SSL", **SASL}
    context = broker_certificate.context(tmp_path)

    def broker(password: str) -> SaslBroker:
        known = {"PLAIN": start("PLAIN", password)}
        return SaslBroker(known, tls=context, versions={"DescribeCluster": None})

    await connects(broker("hush"), properties)
    text = await fails(broker("x"), properties, AuthenticationFailed)
    assert "Invalid username or password" in text


async def test_certificates_that_are_not_accepted(ca: Certified, trusting: dict[str, str], tmp_path: Path) -> None:
    def broker(**options: object) -> ScriptedBroker:
        return tls_broker(certified("b", ca, **{"addresses": ("127.0.0.1",), **options}), tmp_path)  # type: ignore[arg-type]

    assert "the broker's certificate has expired: renew it" in await fails(broker(first_day=-5, last_day=-1), trusting)
    assert "not valid yet" in await fails(broker(first_day=1), trusting)
    other_host = broker(addresses=(), hosts=("kafka.example.com",))
    assert "is for another host" in await fails(other_host, trusting)
    await connects(other_host, {**trusting, "ssl.endpoint.identification.algorithm": ""})
    stranger = tls_broker(certified("b", certified("another CA"), addresses=("127.0.0.1",)), tmp_path)
    assert "is not trusted by ssl.truststore.certificates" in await fails(stranger, trusting)
    pem = tmp_path / "trust.pem"
    pem.write_text(ca.pem)
    from_file = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": str(pem)}
    assert f"is not trusted by ssl.truststore.location={pem}" in await fails(stranger, from_file)
    text = await fails(stranger, {"security.protocol": "SSL"})
    assert "is not trusted by this machine's CAs, set ssl.truststore.location" in text


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_a_broker_that_wants_another_certificate(
    version: str, ca: Certified, broker_certificate: Certified, trusting: dict[str, str], tmp_path: Path
) -> None:
    trusting |= {"ssl.enabled.protocols": version, "default.api.timeout.ms": "1000"}
    # Whether the alert comes before the end of the connection is a race that the client cannot win always.
    text = await fails(tls_broker(broker_certificate, tmp_path, ca), trusting, ClientError)
    assert "client certificate" in text
    stranger = certified("client", certified("another CA"))
    trusting |= {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": stranger.key_pem(),
        "ssl.keystore.certificate.chain": stranger.pem,
    }
    text = await fails(tls_broker(broker_certificate, tmp_path, ca), trusting, ClientError)
    assert "client certificate" in text


async def test_nothing_in_common(broker_certificate: Certified, trusting: dict[str, str], tmp_path: Path) -> None:
    context = broker_certificate.context(tmp_path)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    with AlertingServer(context) as server:
        text = await refused(server, {**trusting, "ssl.enabled.protocols": "TLSv1.2"}, TlsFailed)
    assert "accepts none of ssl.enabled.protocols=TLSv1.2" in text
    context = broker_certificate.context(tmp_path)
    context.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    suites = {"ssl.enabled.protocols": "TLSv1.2", "ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}
    with AlertingServer(context) as server:
        text = await refused(server, {**trusting, **suites}, TlsFailed)
    assert "the broker refused the TLS handshake (handshake failure)" in text


async def test_alerts_about_the_client_certificate(
    ca: Certified, broker_certificate: Certified, trusting: dict[str, str], tmp_path: Path
) -> None:
    trusting["ssl.enabled.protocols"] = "TLSv1.2"
    with AlertingServer(broker_certificate.context(tmp_path, ca)) as server:
        text = await refused(server, trusting, TlsFailed)
        assert "it may want a client certificate: set ssl.keystore.location" in text
        stranger = certified("client", certified("another CA"))
        path = tmp_path / "stranger.pem"
        path.write_text(stranger.key_pem() + stranger.pem)
        trusting |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}
        text = await refused(server, trusting, TlsFailed)
        assert f"the broker refused the client certificate of ssl.keystore.location={path} (unknown ca)" in text


async def test_tls_on_a_plaintext_port(trusting: dict[str, str]) -> None:
    text = await fails(ScriptedBroker(), trusting)
    assert "no TLS there, but security.protocol=SSL: use security.protocol=PLAINTEXT" in text
    text = await fails(ScriptedBroker(), {**trusting, "security.protocol": "SASL_SSL", **SASL})
    assert "no TLS there, but security.protocol=SASL_SSL: use security.protocol=SASL_PLAINTEXT" in text


async def test_plaintext_on_a_tls_port(broker_certificate: Certified, tmp_path: Path) -> None:
    with AlertingServer(broker_certificate.context(tmp_path)) as server:
        text = await refused(server, {}, UnexpectedResponse)
    assert (
        "it answers with TLS, but security.protocol has none: use security.protocol=SSL (SASL_SSL with a login)" in text
    )


async def test_a_broker_that_hangs_up_may_be_starting(trusting: dict[str, str]) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    for limit in ("300", "3000", "30000"):  # a busy machine may not come to the handshake in the first ones
        with pytest.raises(ConnectionFailed) as failed:
            async with Admin(f"127.0.0.1:{port}", properties={**trusting, "default.api.timeout.ms": limit}):
                pass
        if "TLS handshake" in str(failed.value):
            break
    assert "closed the connection during the TLS handshake: the broker may be starting" in str(failed.value)
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE-RSA-AES256-SHA256"),
    ],
)
def test_names_of_suites(java: str, openssl: str) -> None:
    assert openssl_suite(java) == openssl
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:@SECLEVEL=0")
    assert openssl in [each["name"] for each in context.get_ciphers()]


@pytest.mark.filterwarnings("ignore:ssl:DeprecationWarning")  # of versions that nobody should use
def test_suites_and_versions_go_together() -> None:
    only_old = tls_context({"ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"})
    assert only_old.maximum_version == ssl.TLSVersion.TLSv1_2
    modern = "TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256"
    assert tls_context({"ssl.cipher.suites": modern}).minimum_version == ssl.TLSVersion.TLSv1_3
    with_a_gap = tls_context({"ssl.enabled.protocols": "TLSv1.1, TLSv1.3"})
    assert with_a_gap.options & ssl.OP_NO_TLSv1_2


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"ssl.protocol": "SSLv3"}, "ssl.protocol=SSLv3 is not known"),
        ({"ssl.enabled.protocols": "TLSv1.4"}, "ssl.enabled.protocols=TLSv1.4: expected some of TLSv1"),
        ({"ssl.enabled.protocols": ""}, "ssl.enabled.protocols=: expected"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "'https', or empty"),
        ({"ssl.cipher.suites": "TLS_NOTHING_WITH_NOTHING"}, "OpenSSL has none of the suites"),
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "all of its suites or none here: add TLS_AES_256_GCM_SHA384"),
        ({"ssl.engine.factory.class": "com.x.Y"}, "Java code, which cannot run here"),
    ],
)
def test_bad_properties(properties: dict[str, str], says: str) -> None:
    with pytest.raises(ClientError) as caught:
        tls_context(properties)
    assert says in str(caught.value)
