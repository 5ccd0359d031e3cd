"""What the broker answers to each API: one module for each, or for a few that belong together.

A module has `async def handle(broker, call) -> response`, or `def reply(broker, call) -> response` when no request of
the API ever waits. It may have `refuse(call, error) -> response` where the response has no top-level `error_code`.
Modules that begin with `_` hold what several share. Keys and versions are in `groupkeeper.broker.api_table`, which
imports a module on first use; rules of groups are in `groupkeeper.coordinator`.
"""
