"""The Admin client: `from groupkeeper.client.admin import Admin`, with results and arguments in `types`.

Calls on groups and what they need are here, others in `resources`. Connections, routing and retries are in
`groupkeeper.client`; what takes several calls is in `groupkeeper.operations`.
"""

from groupkeeper.client.admin.admin import Admin as Admin
