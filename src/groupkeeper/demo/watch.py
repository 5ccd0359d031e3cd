"""The tour watches its groups: a check for cron, and a server with pages and metrics, for a moment."""

import re
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from groupkeeper import shell
from groupkeeper.demo.stage import READY_WITHIN_S, Terminal, TourFailed, command_path, emphasised, say, stop

_SHOWN = ("groupkeeper_cluster_groups{", "groupkeeper_group_lag{", "groupkeeper_group_lag_seconds{")


def watch_groups(terminal: Terminal) -> None:
    """Checks the groups, serves them, and shows some of the metrics.

    Raises:
        TourFailed: the server did not start, or has no metrics of the groups.
    """
    say(emphasised("\nWatch: limits for cron and CI, and a server with pages and metrics"))
    terminal.show(
        "a group that may be Stable only is not: exit status 3",
        "groupkeeper check --max-time-lag 10m --state Stable",
        expect="broken",
        refused=True,
    )
    if find_spec("uvicorn") is None or find_spec("starlette") is None:
        say("  (groupkeeper serve is left out: in a checkout, pip install '.[serve]' installs it)")
        return
    words = f"groupkeeper serve --bootstrap-server demo={terminal.address} --port 0 --history off".split()
    say(f"\n$ {shell.text(words)}")
    started = time.monotonic()
    with _serving(words) as site:
        while "groupkeeper_group_lag{" not in (metrics := _get(f"{site}metrics")):
            if time.monotonic() - started > READY_WITHIN_S:
                raise TourFailed("groupkeeper serve has no lag of the groups")
            time.sleep(0.1)
        for line in metrics.splitlines():
            if line.startswith(_SHOWN):
                say(line)
        if "<h1>Consumer groups</h1>" not in _get(site):
            raise TourFailed("groupkeeper serve has no first page")
    say(f"  -> {site}metrics for Prometheus, and pages for people at {site} ({time.monotonic() - started:.1f} s)")
    say("     it has ended; to see the pages, run the same command with a broker of yours and open the printed address")


@contextmanager
def _serving(words: list[str]) -> Iterator[str]:
    """The address of the running server."""
    server = subprocess.Popen(
        [command_path(words[0]), *words[1:]], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    guard = threading.Timer(READY_WITHIN_S, server.kill)
    guard.start()
    try:
        assert server.stderr is not None
        line = server.stderr.readline()
        guard.cancel()
        found = re.search(r"http://\S+/", line)
        if found is None:
            raise TourFailed(f"groupkeeper serve did not start: {line}")
        yield found.group()
    finally:
        guard.cancel()
        stop(server)


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=READY_WITHIN_S) as answer:
        return str(answer.read().decode())
