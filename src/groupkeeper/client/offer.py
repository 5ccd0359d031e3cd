"""Finding out whether a listener requires SASL."""

from __future__ import annotations

from collections.abc import Sequence

from groupkeeper.client.addresses import Address
from groupkeeper.client.errors import ClientError
from groupkeeper.client.opener import DIAGNOSIS_S, open_connection
from groupkeeper.client.security.transport import Security
from groupkeeper.client.settings import Settings
from groupkeeper.protocol.errors import UnsupportedSaslMechanism
from groupkeeper.protocol.messages import SaslHandshakeRequest, SaslHandshakeResponse


async def offered_mechanisms(address: Address, settings: Settings, security: Security) -> Sequence[str]:
    """The SASL mechanisms that a listener offers, empty when it does not use SASL or can't be reached."""
    try:
        connection = await open_connection(address, settings, security, DIAGNOSIS_S)
    except ClientError:
        return ()
    try:
        # A broker refuses the empty mechanism name, and lists the enabled mechanisms.
        response = await connection.ask(SaslHandshakeRequest(""), 0, SaslHandshakeResponse, DIAGNOSIS_S)
    except ClientError:
        return ()
    finally:
        connection.abort()
        await connection.wait_closed()
    return response.mechanisms if response.error_code == UnsupportedSaslMechanism.code else ()
