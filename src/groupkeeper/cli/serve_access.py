"""The arguments about who may see and change what in `groupkeeper serve`."""

from __future__ import annotations

import argparse
import secrets
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from groupkeeper.cli.framework.commands import UsageMistake
from groupkeeper.cli.framework.journals import OFF, VARIABLE, journal
from groupkeeper.cli.framework.several_clusters import choice_of
from groupkeeper.cli.serve_files import ServedFile, read_file
from groupkeeper.client.admin import Admin
from groupkeeper.shell import Ways

if TYPE_CHECKING:
    from groupkeeper.cli.framework.commands import ArgumentParser
    from groupkeeper.web.access.oidc import OidcLogin
    from groupkeeper.web.access.people import Access, PageTokens
    from groupkeeper.web.access.roles import Roles
    from groupkeeper.web.changes.desk import Desk
    from groupkeeper.web.changes.record import ChangeRecord

_TOKEN_BYTES = 24


class PageAccess(NamedTuple):
    """The access to the server."""

    access: Access
    desk: Desk | None
    """None: nothing can be changed."""
    record: ChangeRecord | None
    """None: there is no journal."""
    token: str
    """Made for this run; "": none was."""
    files: Sequence[ServedFile]
    """The files of users and roles."""
    oidc: OidcLogin | None
    """None: no provider of logins."""


def add_access(command: ArgumentParser) -> None:
    """Adds the arguments."""
    who = command.add_argument_group("who may see and change something")
    who.add_argument(
        "--allow-changes",
        action="store_true",
        help="allow pages to reset and delete groups, by plans; default: pages are read-only",
    )
    who.add_argument(
        "--token-file",
        metavar="FILE",
        help="a file with a name and a token in each row: only clients with one of these tokens may read; default: "
        "every client may read, and for --allow-changes a token is created at each start",
    )
    who.add_argument(
        "--oidc",
        metavar="FILE",
        help="a provider of logins by OpenID Connect (docs/serve.md): only users who log in there may read",
    )
    who.add_argument(
        "--user-header",
        type=_header,
        metavar="NAME",
        help="the header in which a trusted proxy names the user, for example X-Forwarded-User",
    )
    who.add_argument(
        "--trusted-proxy",
        action="append",
        metavar="ADDRESS",
        help="the address or network of a proxy whose --user-header is trusted",
    )
    add_roles(who)


def add_roles(who: argparse._ArgumentGroup | ArgumentParser) -> None:
    """The argument for the file of roles."""
    who.add_argument(
        "--roles", metavar="FILE", help="who may see and who may change which groups (docs/serve.md); default: all may"
    )


def _header(text: str) -> str:
    if not (text.isascii() and text.replace("-", "").replace("_", "").isalnum()):
        raise ArgumentTypeError(f"{text!r} is not the name of a header; for example X-Forwarded-User")
    return text


def admission_of(
    options: Namespace,
    openers: Mapping[str, Callable[[], Admin]],
    tell: Callable[[str], None],
    ways: Ways,
    *,
    is_local: bool,
) -> PageAccess:
    """Users, roles and changes as the options configure them. `openers`, `tell` and `ways`: see Desk.
    `is_local`: only this machine reaches the server.

    Raises UsageMistake.
    """
    from groupkeeper.web.access.people import Access, Proxy, networks_of
    from groupkeeper.web.changes.desk import Desk
    from groupkeeper.web.changes.record import ChangeRecord

    _check(options, is_local=is_local)
    kept = journal(options)
    if options.allow_changes and kept is None:
        raise UsageMistake(f"argument --allow-changes: changes need the journal, which is turned off: {VARIABLE}={OFF}")
    tokens, token = _tokens(options)
    try:
        networks = networks_of(options.trusted_proxy)
    except ValueError as problem:
        raise UsageMistake(f"argument --trusted-proxy: {problem}") from None
    proxy = None if options.user_header is None else Proxy(options.user_header, networks)
    oidc = _oidc(options)
    is_open = options.token_file is None and proxy is None and oidc is None
    roles = roles_of(options, changes=options.allow_changes)
    access = Access(roles, tokens, proxy, is_open=is_open, has_oidc=oidc is not None)
    desk = None
    if options.allow_changes and kept is not None:
        desk = Desk(openers, kept, tell, choice_of(options, "group"), ways)
    files = [
        ServedFile(options.roles, lambda: access.take_roles(roles_of(options, changes=options.allow_changes))),
        ServedFile(options.token_file, lambda: access.take_tokens(tokens_of(options))),
    ]
    record = None if kept is None else ChangeRecord(kept)
    return PageAccess(access, desk, record, token, [each for each in files if each.path], oidc)


def _check(options: Namespace, *, is_local: bool) -> None:
    if bool(options.user_header) != bool(options.trusted_proxy):
        missing = "--trusted-proxy" if options.user_header else "--user-header"
        raise UsageMistake(f"arguments --user-header and --trusted-proxy go together: {missing} is missing")
    is_known = any(each is not None for each in (options.token_file, options.user_header, options.oidc))
    if options.roles is not None and not is_known:
        raise UsageMistake("argument --roles: users have names only with --token-file, --oidc or --user-header")
    if options.allow_changes and not is_known and not is_local:
        raise UsageMistake(
            "argument --allow-changes: other machines can reach the server: add --token-file, --oidc or --user-header"
        )


def _tokens(options: Namespace) -> tuple[PageTokens | None, str]:
    """The valid tokens, and the token that was generated at this start, "" for none."""
    from groupkeeper.operations.plans.recorder import user
    from groupkeeper.web.access.people import PageTokens

    if options.token_file is not None:
        return tokens_of(options), ""
    if options.user_header is not None or options.oidc is not None or not options.allow_changes:
        return None, ""
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    return PageTokens({token: user() or "somebody"}), token


def tokens_of(options: Namespace) -> PageTokens:
    """The tokens in the file of `--token-file`. Raises UsageMistake."""
    from groupkeeper.web.access.people import read_tokens

    return read_file("--token-file", options.token_file, read_tokens)


def roles_of(options: Namespace, *, changes: bool) -> Roles:
    """The roles in the file of `--roles`; without it everybody may do everything. `changes`: whether something can
    be changed at all. Raises UsageMistake.
    """
    from groupkeeper.web.access.roles import Roles, read_grants

    grants = None if options.roles is None else read_file("--roles", options.roles, read_grants)
    return Roles(grants, changes=changes)


def _oidc(options: Namespace) -> OidcLogin | None:
    from groupkeeper.web.access.oidc import OidcLogin, read_oidc

    if options.oidc is None:
        return None
    settings = read_file("--oidc", options.oidc, read_oidc)
    try:
        return OidcLogin(settings)
    except ImportError as missing:
        raise UsageMistake(
            f"argument --oidc: it needs {missing.name}: pip install '.[oidc]' in a checkout brings it"
        ) from None
