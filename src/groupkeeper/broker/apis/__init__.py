"""The APIs this broker serves, one module each: the listing of this folder is the support matrix.

A module has `KEY`, `VERSIONS` (inclusive range), or `KEYS` with the versions of several that belong together, and
`async def handle(broker, call) -> response`; it may have `refuse(call, error) -> response` where the response has no
top-level `error_code`. `groupkeeper.broker.api_table` names them; they are imported on first use.
"""
