"""`groupkeeper mcp`: groups and plans as tools of the Model Context Protocol, by standard input or by HTTP."""

from __future__ import annotations

import asyncio
import socket
import time
from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING, Any

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.clusters import admin_of
from groupkeeper.cli.framework.commands import Command, UsageMistake, refusing
from groupkeeper.cli.framework.journals import OFF, VARIABLE, journal
from groupkeeper.cli.framework.output import complain
from groupkeeper.cli.framework.several_clusters import add_choices, add_clusters, choice_of, usable_clusters_of
from groupkeeper.cli.framework.typed import way_of
from groupkeeper.cli.serve_access import add_roles, roles_of, tokens_of
from groupkeeper.cli.sockets import listen
from groupkeeper.coroutines import run_coroutine
from groupkeeper.live.archive import Archive
from groupkeeper.live.cluster_poll import WantedGroups
from groupkeeper.live.collector import Collector, Schedule
from groupkeeper.operations.plans.recorder import user

if TYPE_CHECKING:
    from groupkeeper.cli.framework.commands import ArgumentParser
    from groupkeeper.web.access.people import Access
    from groupkeeper.web.api.tools import Toolbox

_TIMEOUT_MS = 10_000
_HOST = "127.0.0.1"
_FRESH_S = 10.0
"""A poll is not repeated within this time."""


def _add_arguments(command: ArgumentParser) -> None:
    add_clusters(command, timeout_ms=_TIMEOUT_MS)
    add_choices(command)
    command.add_argument(
        "--allow-apply",
        action="store_true",
        help="apply plans without asking a person to confirm; default: the client asks, and one that cannot is refused",
    )
    command.add_argument(
        "--http-port",
        type=values.port,
        help="serve streamable HTTP at http://127.0.0.1:N/mcp, for clients with a token; 0: any free port; default: "
        "standard input and output",
    )
    command.add_argument("--token-file", metavar="FILE", help="for --http-port: a name and a token in each row")
    add_roles(command)


class _Looks:
    """Polls clusters when they are asked about."""

    def __init__(self, collectors: list[Collector]) -> None:
        self.collectors = collectors
        self._looked_s: dict[str, float] = {}
        self._looking = asyncio.Lock()

    async def look(self, cluster: str | None) -> None:
        """Polls a cluster, or all (None), unless just polled."""
        async with self._looking:
            late = [
                each
                for each in self.collectors
                if cluster in (None, each.cluster)
                and time.monotonic() - self._looked_s.get(each.cluster, -_FRESH_S) >= _FRESH_S
            ]
            await asyncio.gather(*(each.poll() for each in late))
            self._looked_s |= {each.cluster: time.monotonic() for each in late}

    def forget(self, cluster: str) -> None:
        """Has the changed cluster polled again."""
        self._looked_s.pop(cluster, None)

    async def close(self) -> None:
        """Ends the connections."""
        for each in self.collectors:
            await each.close()


def _run(options: Namespace) -> int:
    try:
        from groupkeeper.web.api.tools import server_of
    except ImportError as missing:
        complain(f"error: groupkeeper mcp needs {missing.name}: pip install '.[mcp]' in a checkout brings it\n")
        return 1
    with refusing(options):
        access = _access(options)
        toolbox, looks = _toolbox(options, access)
    try:
        listening = None if access is None else listen(_HOST, options.http_port, "--http-port")
    except OSError as problem:
        complain(f"error: {problem}\n")
        return 1

    async def run() -> None:
        server = server_of(toolbox)
        try:
            if access is None or listening is None:
                await server.run_stdio_async()
            else:
                await _serve(server.streamable_http_app(), access, listening)
        finally:
            await looks.close()
            await toolbox.actions.journal().journal.close()

    run_coroutine(run())
    return 0


def _toolbox(options: Namespace, access: Access | None) -> tuple[Toolbox, _Looks]:
    """The tools' context, and the polls behind it. Raises UsageMistake."""
    from groupkeeper.web.access.people import Person
    from groupkeeper.web.access.roles import Rights
    from groupkeeper.web.actions import Actions
    from groupkeeper.web.api.answers import Answers
    from groupkeeper.web.api.tools import Toolbox
    from groupkeeper.web.changes.desk import Desk
    from groupkeeper.web.changes.record import ChangeRecord
    from groupkeeper.web.pages.alerts import AlertsNow
    from groupkeeper.web.pages.judged import rows_of

    kept = journal(options)
    if kept is None:
        raise UsageMistake(f"plans need the journal, which is turned off: {VARIABLE}={OFF}")
    clusters = usable_clusters_of(options)
    wanted = WantedGroups(choice_of(options, "group"), choice_of(options, "topic"))
    openers = {name: partial(admin_of, each, options.timeout, _TIMEOUT_MS) for name, each in clusters.items()}
    ways = {name: way_of(options, cluster) for name, cluster in clusters.items()}
    schedule = Schedule(_FRESH_S, wanted)
    looks = _Looks([Collector(name, opener, schedule, Archive(None)) for name, opener in openers.items()])
    desk = Desk(openers, kept, looks.forget, choice_of(options, "group"), ways, "groupkeeper mcp")
    actions = Actions(lambda: [each.snapshot for each in looks.collectors], desk, ChangeRecord(kept))
    me = Person(user() or "somebody", Rights(None, changes=True))

    def person(request: Any) -> Person:
        found = me if access is None else access.person(request, has_session=False)
        assert found is not None  # others get no further
        return found

    answers = Answers(actions, rows_of, AlertsNow)
    return Toolbox(answers, person, looks.look, openers, ways, options.allow_apply), looks


def _access(options: Namespace) -> Access | None:
    """Who may connect by HTTP; None: it is not served. Raises UsageMistake."""
    from groupkeeper.web.access.people import Access

    if options.roles is not None and options.token_file is None:
        raise UsageMistake("argument --roles: users have names only with --http-port and --token-file")
    if (options.http_port is None) != (options.token_file is None):
        raise UsageMistake("arguments --http-port and --token-file go together")
    if options.token_file is None:
        return None
    return Access(roles_of(options, changes=True), tokens_of(options), is_open=False)


async def _serve(app: Any, access: Access, listening: socket.socket) -> None:
    import uvicorn
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse

    async def known(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and access.person(Request(scope), has_session=False) is None:
            refused = PlainTextResponse("Send a token of the file of --token-file.\n", 401)
            await refused(scope, receive, send)
        else:
            await app(scope, receive, send)

    complain(f"serving tools at http://{_HOST}:{listening.getsockname()[1]}/mcp\n")
    await uvicorn.Server(uvicorn.Config(known, log_level="warning", server_header=False)).serve([listening])


COMMAND = Command(
    _add_arguments,
    _run,
    "Offer groups and plans as tools of the Model Context Protocol: list, describe, explain, plan, and apply after a "
    "person has confirmed. A question polls its cluster, at most every 10 seconds.",
    """\
  groupkeeper mcp --context prod
  groupkeeper mcp --bootstrap-server localhost:9092 --http-port 8090 --token-file tokens""",
)
