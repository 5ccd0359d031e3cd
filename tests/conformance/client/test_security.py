"""Every kind of security on a real Apache Kafka 4.3.1: certificates are made here, credentials are the broker's own."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.broker.security.every_login import unsigned
from tests.conformance.brokers import PROPERTIES
from tests.conformance.official import compare
from tests.unit.client.certificates import Certified, certified, trust_pkcs12
from tests.web_server import Asked, Reply, answering
from tools.apache_kafka import ApacheKafka

from groupkeeper.client.admin import Admin
from groupkeeper.client.errors import AuthenticationFailed, BrokersNotFound, ClientError, TlsFailed, UnexpectedResponse
from groupkeeper.protocol.errors import SaslAuthenticationFailed

pytestmark = pytest.mark.conformance

PACKAGE = "org.apache.kafka.common.security"
LISTENERS = {
    "SASL": "SASL_PLAINTEXT",
    "SHORT": "SASL_PLAINTEXT",
    "TLS": "SSL",
    "MTLS": "SSL",
    "SASLTLS": "SASL_SSL",
    "EXPIRED": "SSL",
    "OTHER": "SSL",
}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SESSION_MS = 2500


class Secure:
    """The broker and what its clients need."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = certified("the CA")
        self.own = certified("client", self.ca)
        here: dict[str, Any] = {"hosts": ("localhost",), "addresses": ("127.0.0.1",)}
        certificates = {
            "TLS": certified("broker", self.ca, **here),
            "EXPIRED": certified("broker", self.ca, **here, first_day=-9, last_day=-2),
            "OTHER": certified("broker", self.ca, hosts=("kafka.example.com",)),
        }
        certificates |= {"MTLS": certificates["TLS"], "SASLTLS": certificates["TLS"]}
        (folder / "ca.pem").write_text(self.ca.pem)
        (folder / "trust.p12").write_bytes(trust_pkcs12("trust-secret", self.ca))
        (folder / "own.p12").write_bytes(self.own.pkcs12("own-secret", self.ca))
        (folder / "own.pem").write_text(self.own.key_pem("key-secret") + self.own.pem)
        self.broker = ApacheKafka(
            {**PROPERTIES, **self._settings(certificates)},
            listeners=LISTENERS,
            format_options=[
                part
                for name in MECHANISMS[1:]
                for part in ("--add-scram", f"{name}=[name=alice,password=alice-secret]")
            ],
        )

    def _settings(self, certificates: dict[str, Certified]) -> dict[str, str]:
        settings = {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "ca.pem"),
            "listener.name.mtls.ssl.client.auth": "required",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:alice;User:CN=client",
        }
        for name, certificate in certificates.items():
            path = self.folder / f"{name}.pem"
            path.write_text(certificate.key_pem() + certificate.pem + self.ca.pem)
            settings[f"listener.name.{name.lower()}.ssl.keystore.type"] = "PEM"
            settings[f"listener.name.{name.lower()}.ssl.keystore.location"] = str(path)
        modules = {
            "plain": 'plain.PlainLoginModule required user_alice="alice-secret";',
            "scram-sha-256": "scram.ScramLoginModule required;",
            "scram-sha-512": "scram.ScramLoginModule required;",
            "oauthbearer": 'oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
        }
        for listener in ("sasl", "short", "sasltls"):
            for mechanism, module in modules.items():
                settings[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = f"{PACKAGE}.{module}"
        for mechanism in modules:
            settings[f"listener.name.short.{mechanism}.connections.max.reauth.ms"] = str(SESSION_MS)
        return settings

    def admin(self, listener: str, properties: dict[str, str]) -> Admin:
        protocol = LISTENERS.get(listener, "PLAINTEXT")
        address = self.broker.address(listener) if listener in LISTENERS else self.broker.bootstrap_servers
        given = {"security.protocol": protocol, "default.api.timeout.ms": "20000", **properties}
        return Admin(address, properties=given)

    async def works(self, listener: str, properties: dict[str, str]) -> None:
        async with asyncio.timeout(20), self.admin(listener, properties) as admin:
            assert (await admin.describe_cluster()).nodes
            assert not (await admin.list_groups()).failed

    async def fails(
        self, listener: str, properties: dict[str, str], kind: type[ClientError] = AuthenticationFailed
    ) -> str:
        """What is said when connecting fails, which must be at once."""
        async with asyncio.timeout(10):
            with pytest.raises(kind) as caught:
                await self.works(listener, properties)
        text = str(caught.value)
        assert "\n" not in text
        assert "secret" not in text
        return text

    @property
    def trust(self) -> dict[str, str]:
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.folder / "ca.pem")}


@pytest.fixture(scope="module")
def secure(apache_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    secure = Secure(tmp_path_factory.mktemp("secure"))
    with secure.broker:
        yield secure


def sasl(mechanism: str, password: str = "alice-secret") -> dict[str, str]:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    config = f'{PACKAGE}.{module} required username="alice" password="{password}";'
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": config}


def bearer(options: str = "") -> dict[str, str]:
    config = f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule required {options};"
    return {"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": config}


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_passwords(secure: Secure, mechanism: str) -> None:
    await secure.works("SASL", sasl(mechanism))
    await secure.works("SASLTLS", {**sasl(mechanism), **secure.trust})
    text = await secure.fails("SASL", sasl(mechanism, "guess-secret"))
    assert f"SASL {mechanism} failed: Authentication failed" in text
    assert "check username and password in sasl.jaas.config" in text


async def test_bearer_tokens(secure: Secure) -> None:
    await secure.works("SASL", bearer('unsecuredLoginStringClaim_sub="alice"'))
    mechanism = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}

    async def good() -> str:
        return unsigned("alice", time.time() + 60)

    async def expired() -> str:
        return unsigned("alice", time.time() - 600)

    async with Admin(secure.broker.address("SASL"), properties=mechanism, token_provider=good) as admin:
        assert (await admin.describe_cluster()).nodes
    with pytest.raises(AuthenticationFailed, match=r"SASL OAUTHBEARER failed: .*: check the token") as caught:
        async with Admin(secure.broker.address("SASL"), properties=mechanism, token_provider=expired):
            pass
    assert isinstance(caught.value.refusal, SaslAuthenticationFailed)


async def test_client_credentials(secure: Secure) -> None:
    def reply_to(_: Asked) -> Reply:
        return Reply(200, json.dumps({"access_token": unsigned("alice", time.time() + 60)}).encode())

    with answering(reply_to) as address:
        endpoint = {"sasl.oauthbearer.token.endpoint.url": f"{address}/token"}
        await secure.works("SASL", {**bearer('clientId="me" clientSecret="my-secret"'), **endpoint})


async def test_sessions_are_renewed(secure: Secure) -> None:
    async with secure.admin("SHORT", sasl("SCRAM-SHA-256")) as admin:
        await admin.describe_cluster()
        (connection,) = admin._cluster._bootstrap[0]._connections
        first = connection.renew_at_s
        assert first is not None
        deadline = time.monotonic() + 2.5 * SESSION_MS / 1000
        while time.monotonic() < deadline:
            assert not (await admin.list_groups()).failed
            await asyncio.sleep(0.05)
        assert connection.is_open
        assert connection.renew_at_s is not None
        assert connection.renew_at_s > first + SESSION_MS / 1000


@pytest.mark.parametrize("versions", ["TLSv1.2", "TLSv1.3", "TLSv1.2,TLSv1.3"])
async def test_tls(secure: Secure, versions: str) -> None:
    await secure.works("TLS", {**secure.trust, "ssl.enabled.protocols": versions})


async def test_forms_of_stores(secure: Secure) -> None:
    folder = secure.folder
    java = {"ssl.truststore.location": str(folder / "trust.p12"), "ssl.truststore.password": "trust-secret"}
    own = {"ssl.keystore.location": str(folder / "own.p12"), "ssl.keystore.password": "own-secret"}
    await secure.works("MTLS", {**java, **own})
    pem = {"ssl.keystore.type": "PEM", "ssl.key.password": "key-secret"}
    await secure.works("MTLS", {**secure.trust, **pem, "ssl.keystore.location": str(folder / "own.pem")})
    inline = {"ssl.keystore.key": secure.own.key_pem("key-secret"), "ssl.keystore.certificate.chain": secure.own.pem}
    certificates = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": secure.ca.pem}
    await secure.works("MTLS", {**certificates, **pem, **inline})


async def test_stores_of_keytool(secure: Secure) -> None:
    store = secure.folder / "own.jks"
    pkcs12 = ("-srckeystore", str(secure.folder / "own.p12"), "-srcstorepass", "own-secret", "-srcstoretype", "PKCS12")
    jks = ("-destkeystore", str(store), "-deststorepass", "jks-secret", "-deststoretype", "JKS")
    keytool("-importkeystore", *pkcs12, *jks, "-srcalias", "own", "-destkeypass", "jks-key-secret")
    keytool("-importcert", "-noprompt", "-alias", "ca", "-file", str(secure.folder / "ca.pem"), "-storetype", "JKS",
            "-keystore", str(secure.folder / "trust.jks"), "-storepass", "jks-secret")  # fmt: skip
    properties = {
        "ssl.truststore.location": str(secure.folder / "trust.jks"),
        "ssl.truststore.password": "jks-secret",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": "jks-secret",
        "ssl.key.password": "jks-key-secret",
    }
    await secure.works("MTLS", properties)


def keytool(*arguments: str) -> None:
    run = subprocess.run(["keytool", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_a_client_certificate_that_is_missing_or_unknown(secure: Secure, version: str) -> None:
    trust = {**secure.trust, "ssl.enabled.protocols": version, "default.api.timeout.ms": "3000"}
    text = await secure.fails("MTLS", trust, ClientError)
    assert "client certificate" in text
    stranger = certified("client", certified("another CA"))
    pem = {"ssl.keystore.key": stranger.key_pem(), "ssl.keystore.certificate.chain": stranger.pem}
    text = await secure.fails("MTLS", {**trust, "ssl.keystore.type": "PEM", **pem}, ClientError)
    assert "client certificate" in text


async def test_brokers_that_are_not_trusted(secure: Secure) -> None:
    assert "certificate has expired" in await secure.fails("EXPIRED", secure.trust, TlsFailed)
    assert "certificate is for another host" in await secure.fails("OTHER", secure.trust, TlsFailed)
    await secure.works("OTHER", {**secure.trust, "ssl.endpoint.identification.algorithm": ""})
    assert "is not trusted by this machine's CAs, set ssl.truststore.location" in await secure.fails("TLS", {})


async def test_the_wrong_protocol(secure: Secure) -> None:
    text = await secure.fails("PLAINTEXT", {"security.protocol": "SSL"}, TlsFailed)
    assert "no TLS there, but security.protocol=SSL: use security.protocol=PLAINTEXT" in text
    assert "it answers with TLS" in await secure.fails("TLS", {"security.protocol": "PLAINTEXT"}, UnexpectedResponse)
    text = await secure.fails("PLAINTEXT", {"security.protocol": "SASL_PLAINTEXT", **sasl("PLAIN")})
    assert "the listener there does not use SASL" in text
    text = await secure.fails("SASL", {"security.protocol": "PLAINTEXT"}, ClientError)
    assert "requires SASL: set security.protocol=SASL_PLAINTEXT" in text


def test_the_command(secure: Secure, tmp_path: Path) -> None:
    config = tmp_path / "alice.properties"
    address = secure.broker.address("SASLTLS")

    def run(properties: dict[str, str]) -> subprocess.CompletedProcess[str]:
        given = {"security.protocol": "SASL_SSL", **properties}
        config.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        command = [str(Path(sys.executable).with_name("kafka-consumer-groups")), "--list"]
        arguments = ["--bootstrap-server", address, "--command-config", str(config)]
        return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=30)

    assert run({**secure.trust, **sasl("SCRAM-SHA-512")}).stdout == ""
    wrong = run({**secure.trust, **sasl("SCRAM-SHA-512", "guess-secret")})
    assert "Failed to find brokers to send ListGroups" in wrong.stdout
    assert "secret" not in wrong.stdout + wrong.stderr
    no_store = run({**sasl("PLAIN"), "ssl.truststore.location": str(tmp_path / "none.jks")})
    assert "Failed to create new KafkaAdminClient" in no_store.stdout
    assert "Traceback" not in wrong.stderr + no_store.stderr
    assert "check username and password in sasl.jaas.config" in wrong.stderr
    assert f"ssl.truststore.location={tmp_path}/none.jks: there is no such file" in no_store.stderr


async def test_listing_ends_at_once_without_entering(secure: Secure) -> None:
    async with asyncio.timeout(30):
        admin = secure.admin("SASL", sasl("PLAIN", "guess-secret"))
        with pytest.raises(BrokersNotFound, match="Invalid username or password"):
            await admin.list_groups()
        await admin.close()


PLAIN = {"security.protocol": "SASL_PLAINTEXT", **sasl("PLAIN")}
WRONG = {**PLAIN, **sasl("PLAIN", "guess-secret")}
COMMANDS = (
    (PLAIN, "--list"),
    (WRONG, "--list"),
    (WRONG, "--list --state"),
    (WRONG, "--describe --group g"),
    (WRONG, "--delete --group g"),
    (WRONG, "--delete-offsets --group g --topic orders"),
    (WRONG, "--reset-offsets --group g --topic orders --to-earliest --execute"),
    ({**PLAIN, "sasl.mechanism": "GSSAPI"}, "--list"),
    ({**PLAIN, "sasl.jaas.config": "nonsense"}, "--list"),
    ({"security.protocol": "SASL_PLAINTEXT", **sasl("SCRAM-SHA-256", "guess-secret")}, "--describe --group g --state"),
    ({"security.protocol": "SSL", "ssl.truststore.location": "none.jks"}, "--list"),
)


@pytest.mark.parametrize(("properties", "command"), COMMANDS)
def test_the_official_command_says_the_same(
    secure: Secure, tmp_path: Path, properties: dict[str, str], command: str
) -> None:
    config = tmp_path / "client.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    compare("consumer-groups", secure.broker.address("SASL"), "--command-config", str(config), *command.split())


async def test_bare_tokens_of_a_broker_before_1_0(
    apache_jars: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(f'KafkaServer {{ {PACKAGE}.plain.PlainLoginModule required user_alice="alice-secret"; }};\n')
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.auth.login.config={jaas}")
    # Its listeners are named by their protocols, and ZooKeeper must not be talked to with the same file.
    properties = {"sasl.enabled.mechanisms": "PLAIN", "zookeeper.set.acl": "false"}
    with ApacheKafka(properties, version="0.10.1.1", listeners={"SASL_PLAINTEXT": "SASL_PLAINTEXT"}) as broker:
        address = broker.address("SASL_PLAINTEXT")
        async with asyncio.timeout(20), Admin(address, properties=PLAIN) as admin:
            assert not (await admin.list_groups()).failed
        async with asyncio.timeout(10):
            with pytest.raises(AuthenticationFailed, match="closed the connection, which is how old brokers refuse"):
                async with Admin(address, properties=WRONG):
                    pass
