"""OAuth tokens: made here, called for, read from a file, fetched from a server."""

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from tests.unit.client.certificates import certified
from tests.web_server import Asked, Reply, answering

from groupkeeper.client.errors import AuthenticationFailed, ClientError, IllegalArgument
from groupkeeper.client.security.choice import security_of
from groupkeeper.client.security.sasl import SaslSecurity
from groupkeeper.client.security.token_endpoint import TokenEndpoint, endpoint_of, read_token
from groupkeeper.client.security.tokens import expiry_of, extensions_of, unsecured_token
from groupkeeper.security.jaas import parse_jaas
from groupkeeper.security.mechanisms.mechanism import LoginModule, Token, TokenSource

URL = "sasl.oauthbearer.token.endpoint.url"


def jwt(**claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


def claims_of(token: Token) -> dict[str, object]:
    body = token.value.split(".")[1]
    claims: dict[str, object] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return claims


def options(text: str) -> LoginModule:
    return parse_jaas(f"OAuthBearerLoginModule required {text};")


class TokenServer:
    """Answers with what the test puts into `answers`, one after the other."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes]] = []
        self.asked: list[Asked] = []
        self.url = ""

    def reply_to(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        status, body = self.answers.pop(0)
        return Reply(status, body, {"Location": self.url} if status == 302 else {})

    def form(self) -> dict[str, list[str]]:
        return parse_qs(self.asked[0].body.decode())


@pytest.fixture
def server() -> Iterator[TokenServer]:
    server = TokenServer()
    with answering(server.reply_to) as address:
        server.url = f"{address}/token"
        yield server


def endpoint(server: TokenServer, **properties: str) -> TokenEndpoint:
    given = {
        URL: server.url,
        "sasl.oauthbearer.client.credentials.client.id": "me",
        "sasl.oauthbearer.client.credentials.client.secret": "hush:é",
        **{f"sasl.oauthbearer.{name}": value for name, value in properties.items()},
    }
    return endpoint_of(given, options(""))


async def test_client_credentials(server: TokenServer) -> None:
    token = jwt(exp=time.time() + 100)
    server.answers = [(200, json.dumps({"access_token": token}).encode())]
    assert (await endpoint(server, scope="a b").fetch()).value == token
    authorization = server.asked[0].headers["Authorization"]
    assert base64.b64decode(authorization.removeprefix("Basic ")).decode() == "me:hush:é"
    assert server.form() == {"grant_type": ["client_credentials"], "scope": ["a b"]}


async def test_names_of_the_login_module_and_the_lifetime_of_an_opaque_token(server: TokenServer) -> None:
    server.answers = [(200, b'{"access_token": "opaque", "expires_in": 60}')]
    module = options('clientId="i" clientSecret="s" scope="x"')
    token = await endpoint_of({URL: server.url}, module).fetch()
    assert token.expires_s is not None
    assert 50 < token.expires_s - time.time() < 61
    assert server.form()["scope"] == ["x"]


async def test_a_server_at_fault_is_asked_again(server: TokenServer) -> None:
    server.answers = [(503, b""), (200, b'{"access_token": "t"}')]
    assert (await endpoint(server).fetch()).value == "t"
    server.answers = [(500, b"")] * 3
    with pytest.raises(AuthenticationFailed, match=rf"no token from {URL}=.*: it replies 500"):
        await endpoint(server).fetch()


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, b'{"error": "invalid_client", "error_description": "no\\nsuch"}', r"401 .*\(invalid_client: no such\)"),
        (400, b"<html>", "it replies 400"),
        (302, b"", "it replies 302"),
        (200, b"{}", "has no access_token"),
        (200, b"<html>", "has no access_token"),
        (200, b'{"access_token": 7}', "has no access_token"),
    ],
)
async def test_refusals_are_not_tried_again(server: TokenServer, status: int, body: bytes, says: str) -> None:
    server.answers = [(status, body)]
    with pytest.raises(AuthenticationFailed, match=says) as caught:
        await endpoint(server).fetch()
    assert "hush" not in str(caught.value)
    assert "hush" not in repr(endpoint(server))
    assert "\n" not in str(caught.value)
    assert len(server.asked) == 1


async def test_a_server_that_is_away(server: TokenServer) -> None:
    away = endpoint(server)._replace(url="http://127.0.0.1:1/token")
    with pytest.raises(AuthenticationFailed, match="it cannot be reached"):
        await away.fetch()


async def test_an_https_server_needs_a_certificate(server: TokenServer, tmp_path: Path) -> None:
    certificate = certified("idp", addresses=("127.0.0.1",))
    server.answers = [(200, b'{"access_token": "t"}')]
    with answering(server.reply_to, certificate.context(tmp_path)) as address:
        secure = endpoint(server)._replace(url=f"{address}/token")
        with pytest.raises(AuthenticationFailed, match="CERTIFICATE_VERIFY_FAILED"):
            await secure.fetch()
        trusting = secure._replace(tls={"ssl.truststore.type": "PEM", "ssl.truststore.certificates": certificate.pem})
        assert (await trusting.fetch()).value == "t"


def test_a_token_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a token"
    path.write_text(jwt(exp=7) + "\n")
    assert read_token(path.as_uri()) == Token(jwt(exp=7), 7)
    with pytest.raises(AuthenticationFailed, match=r"no token from .*: No such file"):
        read_token((tmp_path / "none").as_uri())


async def test_a_token_is_used_for_most_of_its_life() -> None:
    lives = [1000.0, -1.0, None]
    fetched: list[float | None] = []

    async def fetch() -> Token:
        fetched.append(lives.pop(0))
        life = fetched[-1]
        return Token(f"t{len(fetched)}", None if life is None else time.time() + life)

    source = TokenSource(fetch)
    assert [await source.current() for _ in range(3)] == ["t1", "t1", "t1"]
    source.forget()
    assert [await source.current() for _ in range(2)] == ["t2", "t3"]


def test_unsecured_tokens() -> None:
    module = options(
        'unsecuredLoginStringClaim_sub="alice" unsecuredLoginNumberClaim_n="1.5" '
        'unsecuredLoginListClaim_scope=",a,b" unsecuredLoginLifetimeSeconds="60"'
    )
    token = unsecured_token(module, 1000.0)
    assert claims_of(token) == {"sub": "alice", "n": 1.5, "scope": ["a", "b"], "iat": 1000.0, "exp": 1060.0}
    assert token.expires_s == 1060.0
    assert "eyJ" not in repr(token)


@pytest.mark.parametrize(
    "text",
    [
        "",
        'unsecuredLoginPrincipalClaimName="name" unsecuredLoginStringClaim_sub="a"',
        'unsecuredLoginStringClaim_sub="a" unsecuredLoginLifetimeSeconds="long"',
        'unsecuredLoginStringClaim_sub="a" unsecuredLoginNumberClaim_x="y"',
        'unsecuredLoginStringClaim_sub="a" unsecuredLoginThing="y"',
        'unsecuredLoginStringClaim_sub="a" unsecuredLoginNumberClaim_scope="1"',
    ],
)
def test_bad_options_of_unsecured_tokens(text: str) -> None:
    with pytest.raises(IllegalArgument):
        unsecured_token(options(text), 0)


def test_extensions() -> None:
    assert extensions_of(options('extension_traceId="x y"')) == {"traceId": "x y"}
    for bad in ('extension_auth="x"', 'extension_a1="x"', 'extension_a="é"'):
        with pytest.raises(IllegalArgument):
            extensions_of(options(bad))


@pytest.mark.parametrize(("token", "expiry"), [(jwt(exp=5), 5.0), (jwt(), None), ("opaque", None), ("a.%.c", None)])
def test_expiry(token: str, expiry: float | None) -> None:
    assert expiry_of(token) == expiry


def test_credentials_need_no_login_module_since_4_1() -> None:
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        URL: "https://idp/token",
        "sasl.oauthbearer.client.credentials.client.id": "me",
        "sasl.oauthbearer.client.credentials.client.secret": "hush",
    }
    assert isinstance(security_of(properties), SaslSecurity)
    properties["sasl.oauthbearer.jwt.retriever.class"] = "org.apache.kafka.x.JwtBearerJwtRetriever"
    with pytest.raises(ClientError, match="JwtBearerJwtRetriever is not supported"):
        security_of(properties)
