"""Plans by time, where transactions end later than their records' times say, and where a log was cut."""

import asyncio
from collections.abc import AsyncIterator, Coroutine

import pytest
from tests.times_and_transactions import check_a_cut_segment, check_clones, check_resets, check_what_is_too_far

from groupkeeper.broker import Broker


@pytest.fixture
async def servers() -> AsyncIterator[str]:
    async with Broker() as broker:
        yield broker.bootstrap_servers


async def carried_out(check: Coroutine[None, None, None]) -> None:
    """Beside the broker, as producers block."""
    await asyncio.to_thread(asyncio.run, check)


async def test_resets_lead_to_records_not_to_markers(servers: str) -> None:
    await carried_out(check_resets(servers))


async def test_clones_to_copies_of_committed_records_are_exact(servers: str) -> None:
    await carried_out(check_clones(servers, range(73)))


async def test_a_record_that_the_brokers_lookup_misses_is_found(servers: str) -> None:
    await carried_out(check_a_cut_segment(servers))


async def test_what_is_too_far_is_said(servers: str) -> None:
    await carried_out(check_what_is_too_far(servers))
