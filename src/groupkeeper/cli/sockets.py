"""The sockets of commands that serve HTTP."""

from __future__ import annotations

import os
import socket

from groupkeeper.client.addresses import Address


def listen(host: str, port: int, way_out: str = "--host or --port") -> socket.socket:
    """A socket that listens. `way_out`: the options that name another address. Raises OSError with a text that names
    the address.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        return socket.create_server(address[:2], family=family)
    except OSError as problem:
        is_name = isinstance(problem, socket.gaierror) or problem.errno is None
        why = problem.strerror or str(problem) if is_name else os.strerror(problem.errno or 0)
        raise OSError(f"cannot listen at {Address(host, port)}: {why}; give another {way_out}") from None
