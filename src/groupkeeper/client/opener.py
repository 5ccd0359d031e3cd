"""Opens connections: looks up names, tries the addresses one after the other, starts TLS, explains failures."""

from __future__ import annotations

import asyncio
import socket

from groupkeeper.client.addresses import Address
from groupkeeper.client.connection import Connection
from groupkeeper.client.errors import ClientError, ConnectionFailed, UnresolvableName
from groupkeeper.client.security.transport import Security
from groupkeeper.client.settings import Settings

DIAGNOSIS_S = 2.0
"""Time limit for finding out why a broker closed the connection."""


async def open_connection(address: Address, settings: Settings, security: Security, timeout_s: float) -> Connection:
    """Connect to the first of the host's addresses that accepts, within `timeout_s` altogether.

    Raises UnresolvableName, ConnectionFailed, TlsFailed. Sends no request: the caller sends ApiVersions, then
    authenticates.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    found = await _look_up(address, timeout_s)
    tls = security.tls()
    last: ClientError = ConnectionFailed(f"{address}: the name has no address")
    for index, host in enumerate(found):
        share_s = (deadline - loop.time()) / (len(found) - index)
        connection = Connection(address, settings.client_id, settings.max_answer_bytes, security.explain)
        try:
            async with asyncio.timeout(share_s):
                await loop.create_connection(
                    lambda made=connection: made,
                    host,
                    address.port,
                    ssl=tls,
                    server_hostname=address.host if tls else None,
                )
            return connection
        except TimeoutError:
            last = ConnectionFailed(
                f"{address}: no connection within {share_s * 1000:.0f} ms: a firewall, or host down?"
            )
            if tls is not None:
                last = await security.diagnose(address, host, DIAGNOSIS_S) or last
        except OSError as error:
            last = await _explained(address, host, error, security)
            last.__cause__ = error
            if not isinstance(last, ConnectionFailed):
                break
    raise last


async def _explained(address: Address, host: str, error: OSError, security: Security) -> ClientError:
    explained = security.explain(address, error)
    if explained is None:
        return ConnectionFailed(f"{address}: {_reason(error)}")
    if isinstance(explained, ConnectionFailed):
        explained = await security.diagnose(address, host, DIAGNOSIS_S) or explained
    return explained


async def _look_up(address: Address, timeout_s: float) -> list[str]:
    """The IP addresses of the host, the preferred one first."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, address.host)
        except OSError:
            continue
        return [address.host]  # a lookup would need a thread
    try:
        async with asyncio.timeout(timeout_s):
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise ConnectionFailed(f"{address}: the name could not be looked up in time") from None
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        text = f"{address}: the name {address.host} cannot be resolved ({reason}): check its spelling"
        raise UnresolvableName(f"{text}, or whether this machine's DNS or /etc/hosts knows it") from error
    return list(dict.fromkeys(str(sockaddr[0]) for _, _, _, _, sockaddr in found))


def _reason(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused: no broker listens there"
    return (error.strerror or str(error)).lower()
