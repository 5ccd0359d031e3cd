"""Stores of keys and certificates: those of Java's keytool in `stores`, and broken ones."""

import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificate, load_pem_x509_certificates
from tests.unit.client.certificates import certified, trust_pkcs12

from groupkeeper.client.errors import ClientError, IllegalArgument
from groupkeeper.client.security.tls import tls_context
from groupkeeper.security import jks
from groupkeeper.security.errors import UnsupportedCredentials
from groupkeeper.security.stores import own_identity, trusted_certificates

STORES = Path(__file__).parent / "stores"
PASSWORD = "store-secret"  # keytool made them with it; java.jks has the key password "key-secret"


def key_store(path: Path, **properties: str) -> dict[str, str]:
    names = {f"ssl.{name.replace('_', '.')}": value for name, value in properties.items()}
    return {"ssl.keystore.location": str(path), "ssl.keystore.password": PASSWORD, **names}


def trust_store(path: Path, **properties: str) -> dict[str, str]:
    names = {f"ssl.truststore.{name}": value for name, value in properties.items()}
    return {"ssl.truststore.location": str(path), "ssl.truststore.password": PASSWORD, **names}


@pytest.mark.parametrize(("name", "key_password"), [("java.jks", "key-secret"), ("java.p12", "")])
@pytest.mark.parametrize("form", ["JKS", "PKCS12"])
def test_key_stores_of_keytool(name: str, key_password: str, form: str) -> None:
    properties = key_store(STORES / name, key_password=key_password, keystore_type=form)
    identity = own_identity(properties)
    assert identity is not None
    key = load_pem_private_key(identity.key.encode(), None)
    certificate = load_pem_x509_certificate(identity.chain.encode())
    assert key.public_key() == certificate.public_key()
    assert certificate.subject.rfc4514_string() == "CN=java client"
    assert "PRIVATE" not in repr(identity)
    tls_context(properties)


@pytest.mark.parametrize("name", ["java-trust.jks", "java-trust.p12"])
def test_trust_stores_of_keytool(name: str) -> None:
    pem = trusted_certificates(trust_store(STORES / name))
    assert pem is not None
    assert [each.subject.rfc4514_string() for each in load_pem_x509_certificates(pem.encode())] == ["CN=java client"]


def test_a_jks_trust_store_is_read_without_its_password() -> None:
    assert trusted_certificates({"ssl.truststore.location": str(STORES / "java-trust.jks")}) is not None


def test_a_chain_goes_along(tmp_path: Path) -> None:
    ca = certified("CA")
    path = tmp_path / "own.p12"
    path.write_bytes(certified("client", ca).pkcs12(PASSWORD, ca))
    identity = own_identity(key_store(path))
    assert identity is not None
    names = [each.subject.rfc4514_string() for each in load_pem_x509_certificates(identity.chain.encode())]
    assert names == ["CN=client", "CN=CA"]


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        (key_store(STORES / "none.jks"), "none.jks: there is no such file"),
        (key_store(STORES), "is a directory: name the file"),
        (key_store(STORES / "java.jks", keystore_password="x"), "java.jks: ssl.keystore.password is wrong"),
        (key_store(STORES / "java.p12", keystore_password="x"), "java.p12: ssl.keystore.password is wrong"),
        (key_store(STORES / "java.p12", keystore_password=""), "java.p12: set ssl.keystore.password"),
        (key_store(STORES / "java.jks", keystore_password=""), "java.jks: set ssl.keystore.password"),
        (key_store(STORES / "java.jks", key_password="x"), "ssl.key.password (default: ssl.keystore.password)"),
        (key_store(STORES / "java-trust.jks"), "has no private key: is it a trust store?"),
        (key_store(STORES / "java-trust.p12"), "has no private key: is it a trust store?"),
        (key_store(STORES / "java.jks", keystore_type="PEM"), "a PEM store has no password: a key's is ssl.key.pass"),
        (key_store(Path(__file__)), "is PEM, not JKS: set ssl.keystore.type=PEM"),
        (key_store(STORES / "java.jks", keystore_type="BKS"), "ssl.keystore.type=BKS is not known: use one of JKS"),
        (trust_store(STORES / "java-trust.jks", password="x"), "java-trust.jks: ssl.truststore.password is wrong"),
        (trust_store(STORES / "java-trust.p12", password="x"), "java-trust.p12: ssl.truststore.password is wrong"),
        (trust_store(STORES / "java-trust.p12", type="PEM"), "a PEM store has no password: remove it"),
        (trust_store(STORES / "java.jks"), "has no trusted certificate"),
        ({"ssl.truststore.certificates": "x"}, "holds PEM: set ssl.truststore.type=PEM as well"),
        (
            {"ssl.truststore.certificates": "x", "ssl.truststore.type": "PEM"},
            "ssl.truststore.certificates has no trusted certificate",
        ),
        ({"ssl.keystore.key": "x", "ssl.keystore.type": "PEM"}, "are needed together"),
    ],
)
def test_what_is_wrong_with_a_store_is_said(properties: dict[str, str], says: str) -> None:
    # -----BEGIN is in this file too
    with pytest.raises(ClientError) as caught:
        tls_context({name: value for name, value in properties.items() if value})
    text = str(caught.value)
    assert says in text
    assert "\n" not in text
    assert PASSWORD not in text


def test_what_is_wrong_with_pem_is_said(tmp_path: Path) -> None:
    one, other = certified("one"), certified("other")
    path = tmp_path / "own.pem"
    properties = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}
    for text, says in (
        ("", "there is no PEM private key"),
        (one.key_pem(), "the private key has no PEM certificate with it"),
        (one.key_pem("hush") + one.pem, "the private key is encrypted: set ssl.key.password"),
        (one.key_pem() + other.pem, "do not match"),
        (one.key_pem().replace("M", "N", 3) + one.pem, "ssl.keystore: the private key cannot be used"),
    ):
        path.write_text(text)
        with pytest.raises(IllegalArgument, match=says):
            tls_context(properties)
    path.write_text(one.key_pem("hush") + one.pem)
    with pytest.raises(IllegalArgument, match=r"ssl.key.password is wrong"):
        tls_context({**properties, "ssl.key.password": "guess"})
    both = {"ssl.keystore.key": one.key_pem(), "ssl.keystore.certificate.chain": one.pem, **properties}
    with pytest.raises(IllegalArgument, match="exclude each other"):
        tls_context(both)


def test_pkcs12_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trust.p12"
    path.write_bytes(trust_pkcs12(PASSWORD, certified("CA")))
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    with pytest.raises(UnsupportedCredentials, match=r"needs a library: the extra 'security'"):
        trusted_certificates(trust_store(path))


def test_a_damaged_jks_ends_in_one_error() -> None:
    content = (STORES / "java.jks").read_bytes()
    for size in range(4, len(content) - 1):
        with pytest.raises((jks.BadStore, jks.WrongPassword)):
            jks.read_jks(content[:size], PASSWORD)
        with pytest.raises(jks.BadStore):
            jks.read_jks(content[:size] if size < 500 else b"\xfe\xed\xfe\xed", None)
    for position in range(4, 40):
        damaged = content[:position] + b"\xff" + content[position + 1 :]
        with pytest.raises(jks.WrongPassword):
            jks.read_jks(damaged, PASSWORD)
    with pytest.raises(jks.BadStore):
        jks.unprotected_key(b"\x30\x03\x30\x01\x00", "x")
