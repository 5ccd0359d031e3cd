"""The broker's handlers of Kafka's APIs: one module for each API, or for a few that belong together.

A module has `async def handle(broker, call, request) -> response`, or `def reply(broker, call, request) -> response`
when no request of the API waits except for replicas that lag: the response may be awaitable while
`broker.answers_may_wait`. It may have `refuse(call, request, error) -> response` if the response has no top-level
`error_code`. Where a module has several APIs, these names end with the one: `handle_create`, `refuse_create`. Modules
that begin with `_` have code that several modules share. Keys are in `groupkeeper.broker.api_table`, which
imports a module on first use; the rules of groups are in `groupkeeper.coordinator`.
"""
