"""Our broker with every way to log in, and how clients of other languages fare: java/Logins.java, ../go/logins.go."""

import base64
import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.differential.wire import Connection
from tests.unit.client.certificates import certified, trust_pkcs12
from tools.apache_kafka import fetch, free_port

from groupkeeper.protocol import messages as m
from groupkeeper.testing.background import BackgroundBroker

HERE = Path(__file__).parent
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PACKAGE = "org.apache.kafka.common.security"
PASSWORD = 'b"=,\\ \u20ac'
LISTENERS = {"SASL": "SASL_PLAINTEXT", "TLS": "SSL", "MTLS": "SSL", "SASLTLS": "SASL_SSL"}
PATIENCE_S = 240


@contextmanager
def open_broker(folder: Path) -> Iterator[tuple[dict[str, str], tuple[str, str]]]:
    """Its addresses by listener, and a delegation token of alice's; the folder has what clients need for TLS."""
    ca = certified("the CA")
    broker = certified("broker", ca, hosts=("localhost",), addresses=("127.0.0.1",))
    (folder / "broker.pem").write_text(broker.key_pem() + broker.pem + ca.pem)
    (folder / "ca.pem").write_text(ca.pem)
    (folder / "trust.p12").write_bytes(trust_pkcs12("trust-secret", ca))
    (folder / "own.p12").write_bytes(certified("client", ca).pkcs12("own-secret", ca))
    addresses = {name: f"127.0.0.1:{free_port()}" for name in LISTENERS}
    properties = {
        "listeners": ",".join(f"{name}://{address}" for name, address in addresses.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items()),
        "listener.name.mtls.ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "delegation.token.secret.key": "a long secret of the cluster",
        "group.initial.rebalance.delay.ms": "0",
        "connection.failed.authentication.delay.ms": "1",
    }
    with BackgroundBroker(properties=properties, users={"alice": PASSWORD}):
        yield addresses, _token(addresses["SASL"])


def check_java(version: str, folder: Path) -> None:
    """Java's client of that version comes in where it may, and nowhere else."""
    files = []
    with open_broker(folder) as (addresses, token):
        for name, (listener, given) in _ways(folder, token).items():
            given = {"bootstrap.servers": addresses[listener], "security.protocol": LISTENERS[listener], **given}
            files.append(folder / f"{name}.properties")
            files[-1].write_text("".join(f"{key}={_escaped(value)}\n" for key, value in given.items()))
        command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{fetch(version)}/*"]
        found = _said([*command, str(HERE / "java" / "Logins.java"), *map(str, files)])
    _check(found, "SaslAuthenticationException: ", 14)


def check_go(program: Path, folder: Path) -> None:
    """franz-go's client, as ../go/logins.go uses it."""
    words = []
    bearer = unsigned("alice", time.time() + 600)
    with open_broker(folder) as (addresses, token):
        for listener, ca in (("SASL", "none"), ("SASLTLS", str(folder / "ca.pem"))):
            for mechanism in MECHANISMS:
                words += [f"{mechanism} {listener}", addresses[listener], mechanism, "alice", PASSWORD, ca]
            words += [f"token {listener}", addresses[listener], "token", *token, ca]
            words += [f"OAUTHBEARER {listener}", addresses[listener], "OAUTHBEARER", "alice", bearer, ca]
        for mechanism in MECHANISMS:
            words += [f"wrong {mechanism}", addresses["SASL"], mechanism, "alice", "nope", "none"]
        words += ["TLS", addresses["TLS"], "none", "", "", str(folder / "ca.pem")]
        found = _said([str(program), *words])
    _check(found, "SASL_AUTHENTICATION_FAILED: ", 14)


def _said(command: Sequence[str]) -> dict[str, str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(line.split("\t") for line in done.stdout.splitlines() if "\t" in line)


def _check(found: Mapping[str, str], refusal: str, count: int) -> None:
    wrong = {name for name in found if "wrong" in name}
    assert {name: said for name, said in found.items() if name not in wrong} == dict.fromkeys(
        found.keys() - wrong, "ok"
    )
    assert all(found[name].startswith(refusal) for name in wrong), found
    assert (len(wrong), len(found)) == (len(MECHANISMS), count)


def _ways(folder: Path, token: tuple[str, str]) -> dict[str, tuple[str, dict[str, str]]]:
    """By name: the listener, and the client's properties."""
    trust = {
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(folder / "trust.p12"),
        "ssl.truststore.password": "trust-secret",
    }
    own = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(folder / "own.p12"),
        "ssl.keystore.password": "own-secret",
        "ssl.key.password": "own-secret",
    }
    ways = {"tls": ("TLS", trust), "mtls": ("MTLS", trust | own)}
    for mechanism in MECHANISMS:
        ways[mechanism] = ("SASL", _login(mechanism, "alice", PASSWORD))
        ways[f"{mechanism} over TLS"] = ("SASLTLS", _login(mechanism, "alice", PASSWORD) | trust)
        ways[f"{mechanism} with a wrong password"] = ("SASL", _login(mechanism, "alice", "nope"))
    ways["token"] = ("SASL", _login("SCRAM-SHA-256", *token, 'tokenauth="true"'))
    bearer = f'{PACKAGE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="alice";'
    for listener, more in (("SASL", {}), ("SASLTLS", trust)):
        given = {"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": bearer, **more}
        ways["OAUTHBEARER" + (" over TLS" if more else "")] = (listener, given)
    return ways


def _login(mechanism: str, username: str, password: str, more: str = "") -> dict[str, str]:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    escaped = password.replace("\\", "\\\\").replace('"', '\\"')
    config = f'{PACKAGE}.{module} required username="{username}" password="{escaped}" {more};'
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": config}


def _escaped(value: str) -> str:
    """As Java reads a file of properties."""
    return "".join(one if one.isascii() else f"\\u{ord(one):04x}" for one in value.replace("\\", "\\\\"))


def _token(address: str) -> tuple[str, str]:
    """A delegation token of alice's: its id and its secret."""
    connection = Connection(address)
    for request, version in (
        (m.SaslHandshakeRequest("PLAIN"), 1),
        (m.SaslAuthenticateRequest(f"\0alice\0{PASSWORD}".encode()), 2),
        (m.CreateDelegationTokenRequest(max_lifetime_ms=-1), 3),
    ):
        connection.send(request, version)
        answer: Any = connection.receive(30)
        assert answer.error_code == 0, answer
    return answer.token_id, base64.b64encode(answer.hmac).decode()


def unsigned(subject: str, expires_s: float) -> str:
    """A token that says who somebody is, without a signature."""
    claims = json.dumps({"sub": subject, "iat": time.time() - 5, "exp": expires_s}).encode()
    parts = (base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (b'{"alg":"none"}', claims))
    return ".".join(parts) + "."
