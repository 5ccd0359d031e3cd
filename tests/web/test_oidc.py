"""Login by OpenID Connect, with a provider that signs what it is told to."""

import hashlib
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from starlette.requests import Request
from tests.web.asking import Answer, Browser
from tests.web_server import Asked, Reply, answering

from groupkeeper.live.archive import Archive
from groupkeeper.live.toml_tables import BadTable
from groupkeeper.web.access.oidc import DONE, OidcFailed, OidcLogin, OidcSettings, OidcUser, read_oidc
from groupkeeper.web.access.people import Access, PageTokens
from groupkeeper.web.access.roles import Roles, grants_of
from groupkeeper.web.app import Site, application
from groupkeeper.web.exporter import Choices, Exporter

CLIENT, SECRET, TOKEN = "groupkeeper", "secret-of-the-client", "token-of-somebody-0123456789"
KEY = RSAKey.generate_key(2048, {"kid": "now"})


class Provider:
    """`asked`: the parameters of the last request for a login; `claims` and `key` are what a token has."""

    def __init__(self) -> None:
        self.address = ""
        self.metadata: Any = {}
        self.key_set: Any = {"keys": [KEY.as_dict(private=False)]}
        self.claims: dict[str, Any] = {}
        self.algorithm, self.key = "RS256", KEY
        self.asked: dict[str, str] = {}

    def token_for(self, form: dict[str, str]) -> dict[str, Any]:
        verifier = hashlib.sha256(form["code_verifier"].encode()).digest()
        assert urlsafe_b64encode(verifier).decode().rstrip("=") == self.asked["code_challenge"]
        now = int(time.time())
        claims = {
            "iss": self.address,
            "sub": "1",
            "aud": CLIENT,
            "iat": now,
            "exp": now + 60,
            "nonce": self.asked["nonce"],
        }
        header = {"alg": self.algorithm, "kid": "now"}
        id_token = jwt.encode(header, {**claims, **self.claims}, self.key, algorithms=[self.algorithm])
        return {"access_token": "a", "token_type": "Bearer", "id_token": id_token}


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()

    def reply_to(asked: Asked) -> Reply:
        document = provider.key_set if asked.path == "/jwks" else provider.metadata
        if asked.path == "/token":
            document = provider.token_for(dict(parse_qsl(asked.body.decode())))
        return Reply(200, json.dumps(document).encode(), {"Content-Type": "application/json"})

    with answering(reply_to) as provider.address:
        provider.metadata = {
            "issuer": provider.address,
            "authorization_endpoint": f"{provider.address}/authorize",
            "token_endpoint": f"{provider.address}/token",
            "jwks_uri": f"{provider.address}/jwks",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
        }
        yield provider


GRANTS = [{"teams": ["kafka-*"], "may": "view"}, {"users": ["bob"], "may": "view", "groups": ["b*"]}]


@pytest.fixture
def browser(provider: Provider) -> Browser:
    return browser_of(provider, "preferred_username")


def browser_of(provider: Provider, user_claim: str) -> Browser:
    settings = OidcSettings(provider.address, CLIENT, SECRET, "openid", user_claim, "groups", "https://gk.example")
    roles = Roles(grants_of({"role": GRANTS}), changes=False)
    access = Access(roles, PageTokens({TOKEN: "bob"}), is_open=False, has_oidc=True)
    site = Site(Exporter(Choices(), lambda: iter(())), list, Archive(None), access, oidc=OidcLogin(settings))
    return Browser(application(site))


async def log_in(browser: Browser, provider: Provider, target: str = "/topics?cluster=a b", **changed: str) -> Answer:
    """As a user would who is sent to the provider and back."""
    begun = await browser._ask("GET", f"/login/oidc?{urlencode({'target': target})}", b"", {})
    assert begun.status == 303
    url = urlsplit(begun.headers["location"])
    provider.asked = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert provider.asked["redirect_uri"] == f"https://gk.example{DONE}"
    back = {"code": "c", "state": provider.asked["state"], **changed}
    return await browser.get(f"{DONE}?{urlencode(back)}")


async def test_a_user_logs_in_with_the_rights_of_a_team(browser: Browser, provider: Provider) -> None:
    page = await browser.get("/journal?group=x")
    assert (page.status, "/login/oidc?target=%2Fjournal%3Fgroup%3Dx" in page.text) == (401, True)
    provider.claims = {"preferred_username": "alice", "groups": ["kafka-ops", "x"]}
    done = await log_in(browser, provider)
    assert (done.status, done.headers["refresh"]) == (200, "0;url=/topics?cluster=a%20b")
    assert "alice" in (await browser.get("/")).words
    assert (await browser.get("/metrics")).status == 200  # the role of kafka-* sees all
    await browser.post("/logout", {"seal": await browser.seal("/")})
    assert (await browser.get("/")).status == 401


async def test_teams_are_needed_where_roles_name_them(browser: Browser, provider: Provider) -> None:
    provider.claims = {"preferred_username": "alice", "groups": "others"}
    await log_in(browser, provider)
    assert "Your roles give you access to no group" in (await browser.get("/")).words
    assert (await browser.get("/metrics")).status == 403


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"aud": "another-client"}, "aud"),
        ({"aud": ["another-client", CLIENT], "azp": "another-client"}, "azp"),
        ({"iss": "https://elsewhere.example"}, "iss"),
        ({"nonce": "of-another-login"}, "nonce"),
        ({"exp": 1, "iat": 0}, "expired"),
        ({"preferred_username": ""}, "no name of the user"),
        ({"preferred_username": "a\nb"}, "no name of the user"),
        ({"preferred_username": ["root"]}, "no name of the user"),
    ],
)
async def test_a_token_that_is_not_for_us(browser: Browser, provider: Provider, claims: Any, said: str) -> None:
    provider.claims = {"preferred_username": "alice", "groups": ["kafka-ops"], **claims}
    refused = await log_in(browser, provider)
    assert (refused.status, said in refused.words) == (403, True), refused.words
    assert (await browser.get("/")).status == 401


async def test_only_the_provider_signs(browser: Browser, provider: Provider) -> None:
    provider.claims = {"preferred_username": "alice", "groups": ["kafka-ops"]}
    forged = OctKey.import_key(SECRET, {"kid": "now"})
    for algorithm, key in (("RS256", RSAKey.generate_key(2048, {"kid": "now"})), ("HS256", forged)):
        provider.algorithm, provider.key = algorithm, key  # type: ignore[assignment]
        assert (await log_in(browser, provider)).status == 403
    assert (await browser.get("/")).status == 401


async def test_a_login_is_of_the_browser_that_began_it_and_once(browser: Browser, provider: Provider) -> None:
    provider.claims = {"preferred_username": "alice", "groups": ["kafka-ops"]}
    assert (await log_in(browser, provider, state="another")).status == 403
    assert (await log_in(browser, provider, error="access_denied")).status == 403
    assert (await log_in(browser, provider)).status == 200
    again = await browser.get(f"{DONE}?code=c&state={provider.asked['state']}")
    assert (again.status, "did not begin in this browser" in again.words) == (403, True)


@pytest.mark.parametrize("target", ["//evil.example/", "https://evil.example/", "/\\evil.example"])
async def test_it_leads_to_no_other_site(browser: Browser, provider: Provider, target: str) -> None:
    provider.claims = {"preferred_username": "alice"}
    assert (await log_in(browser, provider, target)).headers["refresh"] == "0;url=/"


async def test_a_provider_that_is_not_there_or_is_another(browser: Browser, provider: Provider) -> None:
    provider.metadata["issuer"] = "https://elsewhere.example"
    refused = await browser.get("/login/oidc")
    assert (refused.status, "says that it is https://elsewhere.example" in refused.words) == (502, True)
    settings = OidcSettings("http://127.0.0.1:1", CLIENT, "", "openid", "sub", "groups", "")
    access = Access(Roles(None, changes=False), is_open=False, has_oidc=True)
    site = Site(Exporter(Choices(), lambda: iter(())), list, Archive(None), access, oidc=OidcLogin(settings))
    away = await Browser(application(site)).get("/login/oidc")
    assert (away.status, "cannot be asked" in away.words, 'name="token"' in away.text) == (503, True, False)


@pytest.mark.parametrize("lacking", ["authorization_endpoint", "token_endpoint", "jwks_uri"])
async def test_a_discovery_document_that_lacks_something(browser: Browser, provider: Provider, lacking: str) -> None:
    whole = dict(provider.metadata)
    del provider.metadata[lacking]
    refused = await browser.get("/login/oidc")
    assert (refused.status, f"says nothing of {lacking}" in refused.words) == (502, True)
    provider.metadata = whole  # it is mended, and read again
    provider.claims = {"preferred_username": "alice"}
    assert (await log_in(browser, provider)).status == 200


@pytest.mark.parametrize("document", [[], "text", None, {"issuer": [], "token_endpoint": 1}])
async def test_what_is_no_discovery_document(browser: Browser, provider: Provider, document: Any) -> None:
    provider.metadata = document
    assert (await browser.get("/login/oidc")).status == 502


@pytest.mark.parametrize("key_set", [[], {}, {"keys": "none"}, {"keys": [1]}])
async def test_what_are_no_keys(browser: Browser, provider: Provider, key_set: Any) -> None:
    provider.key_set = key_set
    refused = await log_in(browser, provider)
    assert refused.status in (403, 502), refused.words


async def test_the_server_holds_nothing_of_logins_that_have_begun(provider: Provider) -> None:
    """So many of them keep nobody from ending one: another server with the same key ends it."""
    settings = OidcSettings(provider.address, CLIENT, SECRET, "openid", "sub", "groups", "https://gk.example")
    one, two = OidcLogin(settings), OidcLogin(settings)
    two._key = one._key
    url, cookie = await one.begin(Request({"type": "http", "method": "GET", "headers": []}), "/topics")
    provider.asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    query = urlencode({"code": "c", "state": provider.asked["state"]}).encode()
    back = Request({"type": "http", "method": "GET", "headers": [], "query_string": query})
    assert await two.end(back, cookie) == OidcUser("1", (), "/topics")
    for other in ("", "x", cookie[:-3] + "AAA"):
        with pytest.raises(OidcFailed, match="did not begin in this browser"):
            await one.end(back, other)


async def test_an_address_counts_only_where_the_provider_has_verified_it(provider: Provider) -> None:
    browser = browser_of(provider, "email")
    for verified in (False, "true", None):
        provider.claims = {"email": "bob@example.com", "email_verified": verified}
        refused = await log_in(browser, provider)
        assert (refused.status, "has not verified" in refused.words) == (403, True)
    provider.claims = {"email": "bob@example.com", "email_verified": True}
    assert (await log_in(browser, provider)).status == 200


def test_the_name_is_one_that_users_cannot_choose(tmp_path: Path) -> None:
    (tmp_path / "oidc.toml").write_text('issuer = "https://i"\nclient_id = "c"')
    assert read_oidc(str(tmp_path / "oidc.toml")).user_claim == "sub"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('issuer = "https://i"', "client_id is missing"),
        ('issuer = "http://i.example"\nclient_id = "c"', "over http anybody could log in"),
        ('issuer = "i"\nclient_id = "c"', "issuer: expected an https:// address"),
        ('issuer = "https://i"\nclient_id = "c"\nscope = "profile"', "scope: openid is missing"),
        ('issuer = "https://i"\nclient_id = "c"\nclient_secret_variable = "NOT_SET"', "gives nothing"),
    ],
)
def test_a_file_that_makes_no_sense(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "oidc.toml").write_text(text)
    with pytest.raises(BadTable, match=said):
        read_oidc(str(tmp_path / "oidc.toml"))


def test_the_example_of_the_guide(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs/serve.md").read_text()
    (example,) = (part.split("```")[0] for part in guide.split("```toml\n") if part.startswith("issuer"))
    (tmp_path / "client-secret").write_text("secret\n")
    (tmp_path / "oidc.toml").write_text(example)
    assert read_oidc(str(tmp_path / "oidc.toml")).client_secret == "secret"
