"""Explains a failed TLS connection, with a remedy, in one line."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping

from groupkeeper.client.addresses import Address
from groupkeeper.client.errors import ClientError, ConnectionFailed, TlsFailed, UnexpectedResponse

_EXPIRED, _NOT_YET_VALID, _REVOKED = 10, 9, 23
_UNTRUSTED = (2, 18, 19, 20, 21, 24, 27, 28)
_OTHER_NAME = (62, 64)

# OpenSSL's names of reasons, which vary between releases.
_NOT_TLS = {"WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"}
_NO_COMMON_VERSION = {"TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS_AVAILABLE"}
_NO_COMMON_SUITE = {"NO_CIPHERS_AVAILABLE", "TLSV1_ALERT_INSUFFICIENT_SECURITY", "NO_SHARED_CIPHER"}
_REFUSED_CERTIFICATE = {
    "SSLV3_ALERT_BAD_CERTIFICATE",
    "SSL/TLS_ALERT_BAD_CERTIFICATE",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
    "SSL/TLS_ALERT_CERTIFICATE_UNKNOWN",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED",
    "SSL/TLS_ALERT_CERTIFICATE_EXPIRED",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
    "TLSV1_ALERT_UNKNOWN_CA",
    "TLSV1_ALERT_ACCESS_DENIED",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED",
}
_HANDSHAKE_FAILURE = {"SSLV3_ALERT_HANDSHAKE_FAILURE", "SSL/TLS_ALERT_HANDSHAKE_FAILURE"}
_CUT_OFF = {"UNEXPECTED_EOF_WHILE_READING"}


def explained(address: Address, error: OSError, properties: Mapping[str, str]) -> ClientError:
    """The error for a failed TLS connection: TlsFailed, or ConnectionFailed if a retry may help."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsFailed(f"{address}: {_distrust(error, properties)}")
    reason = _reason(error)
    if reason in _NOT_TLS:
        return not_tls(address, properties)
    if reason in _REFUSED_CERTIFICATE or reason in _HANDSHAKE_FAILURE:
        return TlsFailed(f"{address}: {_refused(reason, properties)}")
    if reason in _NO_COMMON_VERSION:
        versions = properties.get("ssl.enabled.protocols", "TLSv1.2,TLSv1.3")
        return TlsFailed(f"{address}: the broker accepts none of ssl.enabled.protocols={versions}")
    if reason in _NO_COMMON_SUITE:
        return TlsFailed(f"{address}: the broker accepts none of the cipher suites: see ssl.cipher.suites")
    if isinstance(error, ssl.SSLError) and reason not in _CUT_OFF:
        return TlsFailed(f"{address}: the TLS handshake failed: {_plain(reason or str(error))}")
    maybe = "the broker may be starting, may want a client certificate (ssl.keystore.location), or has no TLS there"
    return ConnectionFailed(f"{address}: closed the connection during the TLS handshake: {maybe}")


def not_tls(address: Address, properties: Mapping[str, str]) -> TlsFailed:
    """The error for a peer that doesn't use TLS."""
    protocol = properties.get("security.protocol", "SSL").strip().upper()
    other = "SASL_PLAINTEXT" if protocol.startswith("SASL") else "PLAINTEXT"
    way_out = f"use security.protocol={other}, or the port of a TLS listener"
    return TlsFailed(f"{address}: no TLS there, but security.protocol={protocol}: {way_out}")


def _reason(error: OSError) -> str:
    """OpenSSL's name of the error, empty if there is none."""
    return (getattr(error, "reason", None) or "").upper().replace(" ", "_")


def _plain(reason: str) -> str:
    return re.sub(r"\s*\(_ssl\.c:\d+\)", "", reason.replace("_", " ").lower())


def _distrust(error: ssl.SSLCertVerificationError, properties: Mapping[str, str]) -> str:
    code, text = error.verify_code, error.verify_message.rstrip(".")
    if code == _EXPIRED:
        return "the broker's certificate has expired: renew it there (or is this machine's clock wrong?)"
    if code == _NOT_YET_VALID:
        return "the broker's certificate is not valid yet: is this machine's clock wrong?"
    if code in _OTHER_NAME or "match" in text:
        way_out = "connect by a name that the certificate has, or set ssl.endpoint.identification.algorithm to nothing"
        return f"the broker's certificate is for another host ({text}): {way_out} (insecure)"
    if code in _UNTRUSTED:
        way_out = "put the certificate of the CA that signed it there"
        return f"the broker's certificate is not trusted by {_truststore(properties)} ({text}): {way_out}"
    return f"the broker's certificate is refused: {text} (trusted are those of {_truststore(properties)})"


def _truststore(properties: Mapping[str, str]) -> str:
    if properties.get("ssl.truststore.certificates", "").strip():
        return "ssl.truststore.certificates"
    location = properties.get("ssl.truststore.location", "").strip()
    return f"ssl.truststore.location={location}" if location else "this machine's CAs, set ssl.truststore.location"


def _refused(reason: str, properties: Mapping[str, str]) -> str:
    alert = _plain(reason.rpartition("ALERT_")[2])
    location = properties.get("ssl.keystore.location", "").strip()
    if location or properties.get("ssl.keystore.key", "").strip():
        if reason in _HANDSHAKE_FAILURE:
            return f"the broker refused the TLS handshake ({alert}): see ssl.cipher.suites, ssl.enabled.protocols"
        named = f"ssl.keystore.location={location}" if location else "ssl.keystore.certificate.chain"
        return f"the broker refused the client certificate of {named} ({alert}): its CA must be in the broker's store"
    way_out = "set ssl.keystore.location, or ssl.keystore.key and ssl.keystore.certificate.chain"
    return f"the broker refused the TLS handshake ({alert}), it may want a client certificate: {way_out}"


def only_tls(address: Address) -> UnexpectedResponse:
    """The error for a peer that uses TLS when the properties don't."""
    way_out = "use security.protocol=SSL (SASL_SSL with a login), or the port of a listener without TLS"
    return UnexpectedResponse(f"{address}: it answers with TLS, but security.protocol has none: {way_out}")


async def answers_with_tls(host: str, port: int, timeout_s: float) -> bool:
    """Whether the server completes a TLS handshake. No request is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
    except ssl.SSLError as error:
        return "ALERT" in _reason(error)
    except (OSError, TimeoutError):
        return False
    writer.transport.abort()
    return True


async def answers_without_tls(host: str, port: int, timeout_s: float) -> bool:
    """Whether a Kafka broker answers ApiVersions without TLS. Sends no other request."""
    question = bytes.fromhex("0000000a 0012 0000 00000000 ffff")
    writer = None
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(question)
            size = int.from_bytes(await reader.readexactly(4), "big")
            return 10 <= size < 65536 and await reader.readexactly(6) == bytes(6)
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return False
    finally:
        if writer is not None:
            writer.transport.abort()
