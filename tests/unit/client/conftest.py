"""Every client test ends without tasks and sockets left behind."""

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/unit/client/"):
            # A socket that is collected instead of closed, or a failure that nobody looked at.
            item.add_marker(pytest.mark.filterwarnings("error::ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(scope="package", autouse=True)
def nothing_of_others() -> None:
    """What the tests of other folders left behind is collected before the first test here, not blamed on it.

    What is alive then is left out of the collections after each test.
    """
    with warnings.catch_warnings(action="ignore"):
        gc.collect()
    gc.freeze()


@pytest_asyncio.fixture(autouse=True)
async def nothing_left_behind() -> AsyncIterator[None]:
    """Only what a test starts itself may be alive afterwards, and no failure may be left in a forgotten future."""
    unhandled: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: unhandled.append(context))
    before = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert left == set()
    gc.collect()
    assert unhandled == []
