"""The Admin client: `from groupkeeper.client.admin import Admin`, with results and arguments in `types`.

Calls on groups, topics and offsets are here, others in `resources`. Connections, routing and retries are in
`groupkeeper.client`; tasks that take several calls are in `groupkeeper.operations`.
"""

from groupkeeper.client.admin.admin import Admin as Admin
