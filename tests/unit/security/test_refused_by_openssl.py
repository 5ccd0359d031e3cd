"""A certificate that OpenSSL's security level refuses is named as what it is: nothing of the store is damaged."""

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from groupkeeper.security.errors import BadCredentials
from groupkeeper.security.stores import Identity
from groupkeeper.security.tls import load_identity

COMMANDS = (
    "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj /CN=ca",
    "req -newkey rsa:{bits} -nodes -keyout own.key -out own.csr -subj /CN=own",
    "x509 -req -{digest} -in own.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out own.pem",
)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
@pytest.mark.parametrize(
    ("bits", "digest", "said"),
    [
        (2048, "sha1", "a certificate is signed with a weak digest, SHA-1 or MD5 (CA_MD_TOO_WEAK)"),
        (1024, "sha256", "the certificate's key is too short (EE_KEY_TOO_SMALL)"),
    ],
)
def test_a_certificate_that_is_too_weak(tmp_path: Path, bits: int, digest: str, said: str) -> None:
    for command in COMMANDS:
        words = ["openssl", *command.format(bits=bits, digest=digest).split()]
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    identity = Identity((tmp_path / "own.key").read_text(), (tmp_path / "own.pem").read_text(), None)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("DEFAULT@SECLEVEL=2")
    with pytest.raises(BadCredentials) as refused:
        load_identity(context, identity)
    assert str(refused.value) == f"ssl.keystore: {said}, which OpenSSL refuses"
