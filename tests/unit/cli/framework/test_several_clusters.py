"""Reports without an end, of several clusters."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from groupkeeper.cli.framework.reports import Page
from groupkeeper.cli.framework.several_clusters import _as_they_come as as_they_come


async def test_an_unexpected_error_of_one_cluster_is_raised_although_the_others_never_end() -> None:
    were_closed = []

    async def endless() -> AsyncGenerator[Page, None]:
        try:
            yield Page([{"cluster": "prod"}])
            await asyncio.Event().wait()
        finally:
            were_closed.append("prod")

    async def broken() -> AsyncGenerator[Page, None]:
        yield Page([{"cluster": "dr"}])
        raise ZeroDivisionError

    pages = as_they_come([endless(), broken()])
    async with asyncio.timeout(40):
        first = [await anext(pages), await anext(pages)]
        with pytest.raises(ZeroDivisionError):
            await anext(pages)
    assert {row["cluster"] for page in first for row in page.rows} == {"prod", "dr"}
    assert were_closed == ["prod"]


async def test_a_cluster_whose_report_ends_leaves_the_others_going() -> None:
    has_ended = asyncio.Event()

    async def short() -> AsyncGenerator[Page, None]:
        yield Page([{"cluster": "dr"}])
        has_ended.set()

    async def longer() -> AsyncGenerator[Page, None]:
        await has_ended.wait()
        yield Page([{"cluster": "prod"}])

    async with asyncio.timeout(40):
        pages = [page async for page in as_they_come([longer(), short()])]
    assert [row["cluster"] for page in pages for row in page.rows] == ["dr", "prod"]
