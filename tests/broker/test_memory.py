"""How `groupkeeper broker` treats its memory."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

LOADED = """
import asyncio, gc, sys
from groupkeeper.broker import Broker
from groupkeeper.cli.broker import collect_but_what_is_loaded

async def main():
    gc.disable()
    async with Broker(directory=sys.argv[1]) as broker:
        broker.groups.ensure_topic()
        await collect_but_what_is_loaded(broker)
        loaded = {id(shard) for shard in broker.groups.shards}
        is_rare = gc.get_threshold()[0] > 10_000
        print(gc.isenabled(), is_rare, gc.get_freeze_count() > 0, any(id(one) in loaded for one in gc.get_objects()))

asyncio.run(main())
"""


@pytest.mark.skipif(not hasattr(gc, "freeze"), reason="PyPy's collector is another one")
def test_what_was_loaded_is_never_looked_through_for_garbage(tmp_path: Path) -> None:
    # In a process of its own: frozen objects are frozen for all.
    run = subprocess.run([sys.executable, "-c", LOADED, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("True True True False\n", "")
