"""Facts as rows under the names of ``--output json``, for commands, the HTTP API and MCP alike.

What the columns mean is in the shapes of the commands; how facts are found is in the other modules of `operations`.
"""
