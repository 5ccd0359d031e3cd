"""What a call says that ran out of time."""

import asyncio
import time

import pytest

from groupkeeper.client.deadlines import Backoff, Deadline
from groupkeeper.client.errors import CallTimedOut


async def test_on_a_busy_machine_the_reason_for_another_attempt_is_told() -> None:
    deadline = Deadline("fetch", 300)
    asyncio.get_running_loop().call_soon(time.sleep, 0.4)  # the pause is shorter, and ends late
    with pytest.raises(CallTimedOut, match=r"fetch timed out after 300 ms \(last: no records\)"):
        await Backoff(100, 100).pause(deadline, ValueError("no records"))
