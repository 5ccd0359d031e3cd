"""The state of broker addresses, checked while a client keeps trying to connect."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum

from groupkeeper.client.addresses import Address, parse_bootstrap_servers


class Reach(Enum):
    """What became of one attempt to connect."""

    OPEN = "connected to"
    REFUSED = "connection refused by"
    SILENT = "no connection yet to"


async def try_addresses(bootstrap_servers: str, *, timeout_s: float) -> Sequence[tuple[Address, Reach]]:
    """Connect to each address once, all at the same time, and hang up. Raises InvalidAddress."""
    addresses = parse_bootstrap_servers(bootstrap_servers)
    return list(zip(addresses, await asyncio.gather(*(_try(one, timeout_s) for one in addresses)), strict=True))


async def _try(address: Address, timeout_s: float) -> Reach:
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(address.host, address.port)
    except ConnectionRefusedError:
        return Reach.REFUSED
    except OSError:  # TimeoutError is one
        return Reach.SILENT
    writer.close()
    return Reach.OPEN
