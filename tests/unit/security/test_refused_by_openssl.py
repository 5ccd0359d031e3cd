"""A certificate that OpenSSL's security level refuses is named as what it is: nothing of the store is damaged."""

import datetime
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from groupkeeper.security.errors import BadCredentials
from groupkeeper.security.stores import StoreIdentity
from groupkeeper.security.tls import load_identity

SHA256_WITH_RSA, SHA1_WITH_RSA = bytes.fromhex("2a864886f70d01010b"), bytes.fromhex("2a864886f70d010105")
"""Object identifiers in DER. Libraries sign nothing with SHA-1 any more; OpenSSL looks at the name alone."""


def signed(bits: int, algorithm: bytes) -> StoreIdentity:
    """A key of so many bits, with a certificate of a CA that names this algorithm of its signature."""
    own, ca = rsa.generate_private_key(65537, bits), rsa.generate_private_key(65537, 2048)
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("own", "ca")]
    certificate = x509.CertificateBuilder(names[1], names[0], own.public_key(), x509.random_serial_number())
    certificate = certificate.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    key = own.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    der = certificate.sign(ca, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
    return StoreIdentity(key.decode(), ssl.DER_cert_to_PEM_cert(der.replace(SHA256_WITH_RSA, algorithm)), None)


@pytest.mark.parametrize(
    ("bits", "algorithm", "said"),
    [
        (2048, SHA1_WITH_RSA, "a certificate is signed with a weak digest, SHA-1 or MD5 (CA_MD_TOO_WEAK)"),
        (1024, SHA256_WITH_RSA, "the certificate's key is too short (EE_KEY_TOO_SMALL)"),
    ],
)
def test_a_certificate_that_is_too_weak(bits: int, algorithm: bytes, said: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("DEFAULT@SECLEVEL=2")
    try:
        load_identity(context, signed(bits, algorithm))
    except BadCredentials as refused:
        found = str(refused)
    else:  # Debian's OpenSSL 3.5 loads it, and refuses it from a peer only
        assert algorithm is SHA1_WITH_RSA
        pytest.skip(f"{ssl.OPENSSL_VERSION} loads a certificate that is signed with SHA-1")
    assert found == f"ssl.keystore: {said}, which OpenSSL refuses"
