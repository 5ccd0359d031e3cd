"""A web server on this machine that answers what a test says."""

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Asked(NamedTuple):
    path: str
    headers: Mapping[str, str]
    body: bytes


class Reply(NamedTuple):
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}


@contextmanager
def answering(reply_to: Callable[[Asked], Reply], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Yields its URL, without a path. `reply_to` is called in a thread for each connection."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            reply = reply_to(Asked(self.path, self.headers, body))  # type: ignore[arg-type]
            self.send_response(reply.status)
            for header in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                self.send_header(*header)
            self.end_headers()
            self.wfile.write(reply.body)

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
            server.handle_error = lambda *_: None  # type: ignore[method-assign]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http{'' if tls is None else 's'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
