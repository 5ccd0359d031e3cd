"""What pages show and do, as JSON for programs: the HTTP API, and the tools of MCP on the same functions.

Statuses, rights and plans are those of the pages; here is how they are asked for, and how they are written.
"""
