"""Certificates made for a test: a CA, brokers and clients signed by it."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


class Certified:
    """A key with its certificate."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self.key = key
        self.certificate = certificate

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, _encryption(password)).decode()

    def pkcs12(self, password: str, ca: Certified | None = None) -> bytes:
        chain = [ca.certificate] if ca is not None else None
        return pkcs12.serialize_key_and_certificates(b"own", self.key, self.certificate, chain, _encryption(password))

    def context(self, folder: Path, ca: Certified | None = None) -> ssl.SSLContext:
        """A server's context; with `ca` it wants certificates of clients."""
        path = folder / f"{self.certificate.serial_number}.pem"
        path.write_text(self.key_pem() + self.pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        if ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=ca.pem)
        return context


def _encryption(password: str | None) -> KeySerializationEncryption:
    return NoEncryption() if password is None else BestAvailableEncryption(password.encode())


def certified(
    name: str,
    issuer: Certified | None = None,
    *,
    hosts: tuple[str, ...] = (),
    addresses: tuple[str, ...] = (),
    first_day: int = -1,
    last_day: int = 10,
) -> Certified:
    """A new key and its certificate, signed by the issuer, None: by itself, as a CA. Days are from now."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + first_day * DAY)
        .not_valid_after(now + last_day * DAY)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key((issuer.key if issuer else key).public_key()),
            critical=False,
        )
    )
    if issuer is None:
        builder = builder.add_extension(
            x509.KeyUsage(True, False, False, False, False, True, True, False, False), critical=True
        )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return Certified(key, builder.sign(issuer.key if issuer else key, hashes.SHA256()))


def trust_pkcs12(password: str, *trusted: Certified) -> bytes:
    """A trust store as `keytool -importcert` makes them."""
    certificates = [pkcs12.PKCS12Certificate(each.certificate, b"ca%d" % n) for n, each in enumerate(trusted)]
    return pkcs12.serialize_java_truststore(certificates, _encryption(password))
