"""Facts as rows under the names of `--output json`, for commands, the HTTP API and MCP alike.

The columns' meanings are in the schemas of the commands; the facts come from the other modules of `operations`.
"""
