"""The pytest plugin, as users have it. The broker that it starts is tested under `tests/broker`."""
