"""Work that takes longer than its caller waits."""

import asyncio

import pytest

from groupkeeper.live.errand import Errand


class Work:
    """Pieces of work, each of which ends when it is let."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_end = asyncio.Event()

    async def __call__(self) -> int:
        self.begun += 1
        number = self.begun
        await self.may_end.wait()
        return number


async def test_late_work_is_not_begun_anew_and_its_result_is_not_lost() -> None:
    errand, work = Errand[int](), Work()
    assert await errand.result(work, 0.01) is None
    assert await errand.result(work, 0.01) is None
    assert work.begun == 1
    asyncio.get_running_loop().call_later(0.02, work.may_end.set)
    assert await errand.result(work, 20) == 2  # the time that is left is for new work
    work.may_end.clear()
    assert await errand.result(work, 0.01) is None
    work.may_end.set()
    await asyncio.sleep(0)
    work.may_end.clear()
    assert await errand.result(work, 0.05) == 3  # new work is late again
    assert work.begun == 4
    await errand.end()


async def test_failures_are_raised_and_the_end_leaves_nothing() -> None:
    errand, work = Errand[int](), Work()

    async def fail() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await errand.result(fail, 20)
    assert await errand.result(work, 0.01) is None
    await errand.end()
    await errand.end()
    work.may_end.set()
    assert await errand.result(work, 20) == 2
