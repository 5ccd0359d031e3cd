"""Headers that nobody honest sends: no page shows them, none of them makes somebody known, nothing breaks."""

import re
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.released import paths_in
from tests.web.serving import Served, serving

from groupkeeper.testing.background import BackgroundBroker

TOKEN = "a-token-that-is-long-enough"
EVIL = "evil.example"
AGE = re.compile(r"[\w ]+ ago")
NAMED = [path for path in paths_in("serve.md") if not path.startswith("/api/")]
"""All pages: test_routes.py sees to it."""
PATHS = [f"{path}?cluster=prod&group=search&topic=orders&q=s" for path in (*NAMED, "/login", "/style.css", "/nowhere")]


@pytest.fixture(scope="module")
def served(broker: BackgroundBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Reached under every name, as one that listens for a network is; only a proxy elsewhere is trusted."""
    tokens = tmp_path_factory.mktemp("access") / "tokens"
    tokens.write_text(f"alice {TOKEN}\n")
    where = ("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--host", "0.0.0.0", "--interval", "1h")
    proxy = ("--user-header", "X-User", "--trusted-proxy", "10.0.0.0/8", "--token-file", str(tokens))
    with serving(*where, *proxy) as served:
        local = served._replace(address=f"127.0.0.1:{served.port}")
        local.until_ready()
        yield local
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(60) == 0
        assert served.process.stderr is not None
        assert "Traceback" not in served.process.stderr.read()


def answer(served: Served, *headers: str, path: str = "/", host: str = "localhost") -> str:
    """The whole answer, with its headers, of a request that is written as it stands."""
    text = "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {host}", *headers, "Connection: close", "", ""])
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
        connection.sendall(text.encode("latin-1"))
        found = b""
        while part := connection.recv(65536):
            found += part
    return found.decode()


def status(text: str) -> int:
    return int(text.split(" ", 2)[1])


BEARER = f"Authorization: Bearer {TOKEN}"


@pytest.mark.parametrize("path", PATHS)
def test_no_page_has_what_forged_headers_say(served: Served, path: str) -> None:
    forged = (
        f"Forwarded: for=10.0.0.1;host={EVIL};proto=https", "X-Forwarded-For: 10.0.0.1", f"X-Forwarded-Host: {EVIL}",
        f"X-Forwarded-Prefix: //{EVIL}", f"X-Original-URL: //{EVIL}", f"Referer: https://{EVIL}/", f"Origin: https://{EVIL}",
        f"X-User: {EVIL}", f"User-Agent: <script>{EVIL}</script>", "X-HTTP-Method-Override: POST",
    )  # fmt: skip
    plain, found = answer(served, BEARER, path=path), answer(served, BEARER, *forged, path=path)
    assert EVIL not in found
    assert status(found) == status(plain) != 500
    assert "access-control-allow-origin" not in found.lower()


@pytest.mark.parametrize(
    "headers",
    [
        ("X-User: alice",),
        ("X-User: alice", "X-User: alice"),
        ("X-User: alice", "X-Forwarded-For: 10.0.0.1"),
        ("X-User: alice", "Forwarded: for=10.0.0.1", "X-Real-IP: 10.0.0.1", "Client-IP: 10.0.0.1"),
        ("x-user: alice", "Via: 1.1 10.0.0.1"),
        (f"Authorization: Bearer {TOKEN}x",),
        (f"Authorization: Basic {TOKEN}",),
        ("Authorization: Bearer \xff\xfe",),
        ("Authorization: Bearer",),
        (f"Cookie: groupkeeper={TOKEN}",),
        ("Cookie: groupkeeper=; groupkeeper=x; =; ;;", "Cookie: groupkeeper=\xff"),
        (f"X-Note: a\r\n {BEARER}",),  # a continuation of the header above
        (f"X-Note: a\n{BEARER}x",),
    ],
)
def test_none_of_them_makes_somebody_known(served: Served, headers: tuple[str, ...]) -> None:
    assert status(answer(served, *headers)) in (400, 401)


@pytest.mark.parametrize(
    "host",
    [
        EVIL, f"{EVIL}:80", f"a@{EVIL}", f"{EVIL}/style.css?", f"{EVIL}/../../../../../../etc/passwd?", f"{EVIL}#",
        "[", "[::1", "::1", "", ":", "a" * 8000, "\xff\xfe", "<b>", "localhost:99999999", f"localhost\r\nHost: {EVIL}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/prometheus-rules.yaml", "/healthz"])
def test_a_name_that_is_none_leads_nowhere(served: Served, host: str, path: str) -> None:
    found = answer(served, BEARER, host=host, path=path)
    assert status(found) in (200, 400, 421), found[:200]
    assert EVIL not in found
    if status(found) == 200:
        expected = answer(served, BEARER, path=path)
        bodies = [AGE.sub("", each.partition("\r\n\r\n")[2]) for each in (found, expected)]
        assert bodies[0] == bodies[1]


def test_what_is_too_long_or_too_much_ends_at_once(served: Served) -> None:
    began = time.monotonic()
    for headers in (
        [f"X: {'a' * 70_000}"],
        [f"Cookie: {'a=b; ' * 20_000}"],
        [f"X-{number}: a" for number in range(5000)],
        [f"{'x' * 40_000}: a"],
    ):
        try:
            found = answer(served, BEARER, *headers)
        except ConnectionError:
            continue  # hung up before all of it was sent
        assert status(found) in (200, 400, 431), found[:200]
    assert time.monotonic() - began < 60
    assert served.get("/healthz").status == 200


def test_a_header_in_the_query_is_none(served: Served) -> None:
    """Carriage return and line feed in what comes back in a header."""
    for path in (
        "/login?target=/%0d%0aSet-Cookie:%20groupkeeper=x", "/groups.csv?cluster=prod%0d%0aX-Evil:%201",
        "/%0d%0aX-Evil:%201", "/cluster?cluster=prod&q=%0d%0aX-Evil:%201",
    ):  # fmt: skip
        head = answer(served, BEARER, path=path).partition("\r\n\r\n")[0].lower()
        assert not re.search("^(x-evil|set-cookie)", head, re.MULTILINE)


def test_a_trusted_proxy_names_a_user_once(broker: BackgroundBroker, tmp_path: Path) -> None:
    where = ("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--interval", "1h")
    with serving(*where, "--user-header", "X-User", "--trusted-proxy", "127.0.0.1") as served:
        served.until_ready()
        assert ">carol " in answer(served, "X-User: carol")
        assert "&lt;b&gt;carol" in answer(served, "X-User: <b>carol")
        for headers in (
            ("X-User: carol", "X-User: alice"), ("X-User: ",), ("X-User: a\tb",), (f"X-User: {'a' * 201}",),
            ("X_User: carol",), ("X-User : carol",), ("X-User: carol\x0b",),
        ):  # fmt: skip
            assert status(answer(served, *headers)) in (400, 401), headers
