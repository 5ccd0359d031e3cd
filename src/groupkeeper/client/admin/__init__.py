"""The Admin client: ``from groupkeeper.client.admin import Admin``. Results and arguments are in ``types``."""

from groupkeeper.client.admin.admin import Admin as Admin
