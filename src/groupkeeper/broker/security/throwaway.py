"""A CA for tests and developers, with a broker certificate signed by it. Trust it nowhere else."""

from __future__ import annotations

import os
from collections.abc import Mapping

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.storage.directory import replace_file

FOLDER = "tls"
_CA, _BROKER, _CLIENT = "ca.pem", "broker.pem", "client.pem"
_DAYS = 825


def throwaway_settings(directory: str) -> dict[str, str]:
    """The broker's settings for the throw-away certificate in the data directory, and for trust in client certificates
    of the same CA. The certificates are made if they are absent. Raises `InvalidSetting`, OSError.
    """
    folder = os.path.join(directory, FOLDER)
    path = os.path.join(folder, _BROKER)
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        _make(folder)
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": path,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": os.path.join(folder, _CA),
    }


def client_properties(protocol: str, directory: str | None, user: str, password: str) -> dict[str, str]:
    """The settings for a Java client; other clients can use the CA's file, too. `directory` None: the trust store is
    left out, as the CA is not ours; `user` empty: the login is left out.
    """
    properties = {"security.protocol": protocol}
    if protocol.endswith("SSL") and directory is not None:
        path = os.path.abspath(os.path.join(directory, FOLDER, _CA))
        properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": path}
    if protocol.startswith("SASL_"):
        properties["sasl.mechanism"] = "SCRAM-SHA-512"
        if user:
            name, secret = (text.replace("\\", "\\\\").replace('"', '\\"') for text in (user, password))
            module = "org.apache.kafka.common.security.scram.ScramLoginModule"
            properties["sasl.jaas.config"] = f'{module} required username="{name}" password="{secret}";'
    return properties


def librdkafka_properties(java: Mapping[str, str], user: str, password: str) -> dict[str, str]:
    """`client_properties` by the names of librdkafka."""
    names = {"security.protocol": "security.protocol", "sasl.mechanism": "sasl.mechanism"}
    names["ssl.truststore.location"] = "ssl.ca.location"
    properties = {names[name]: value for name, value in java.items() if name in names}
    return properties | ({"sasl.username": user, "sasl.password": password} if user else {})


def _make(folder: str) -> None:
    try:
        import datetime
        import ipaddress
        import socket

        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    except ImportError:
        raise InvalidSetting(
            "making a certificate needs a library: the extra 'security' (in a checkout: pip install '.[security]')"
        ) from None

    def named(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    now = datetime.datetime.now(datetime.UTC)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = named("groupkeeper throw-away CA")

    def begun(name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(ca_name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        # Python 3.13 and later refuse certificates that don't identify their keys.
        identified = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        issued = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
        builder = builder.add_extension(identified, critical=False).add_extension(issued, critical=False)
        return builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(
            now + datetime.timedelta(days=_DAYS)
        )

    def signed(builder: x509.CertificateBuilder) -> str:
        return builder.sign(ca_key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()

    def whole(name: str, usage: x509.ObjectIdentifier, others: list[x509.GeneralName]) -> str:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = begun(named(name), key).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if others:
            builder = builder.add_extension(x509.SubjectAlternativeName(others), critical=False)
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return text + signed(builder)

    hosts = dict.fromkeys(("localhost", socket.gethostname(), socket.getfqdn()))
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts if host.isascii()]
    names += [x509.IPAddress(ipaddress.ip_address(one)) for one in ("127.0.0.1", "::1")]
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    ca = begun(ca_name, ca_key).add_extension(x509.BasicConstraints(True, 0), critical=True)
    # The broker's certificate is written last: if it is there, the set is complete.
    replace_file(os.path.join(folder, _CA), signed(ca.add_extension(usage, critical=True)))
    client = whole("client", ExtendedKeyUsageOID.CLIENT_AUTH, [])
    replace_file(os.path.join(folder, _CLIENT), client, mode=0o600)
    replace_file(os.path.join(folder, _BROKER), whole("broker", ExtendedKeyUsageOID.SERVER_AUTH, names), mode=0o600)
