"""Parts of the broker without sockets. Requests over the wire are under `tests/broker`."""
