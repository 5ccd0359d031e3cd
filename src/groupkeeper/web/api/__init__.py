"""The pages' content and actions as JSON for programs: the HTTP API, and the tools of MCP on the same functions.

Statuses, rights and plans are those of the pages; here are requests and formats.
"""
