"""Pages of the site that aren't in docs/: the project's own pages, and the reference of the API. A hook of mkdocs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

OWN_PAGES = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
"""Where pages of the checkout's root are on the site."""

VALUES = (
    "groupkeeper.client.topology",
    "groupkeeper.client.batch",
    "groupkeeper.client.admin.types",
    "groupkeeper.client.admin.streams_types",
    "groupkeeper.client.admin.resources.types",
    "groupkeeper.client.admin.resources.access_types",
    "groupkeeper.api.admin.GroupLag",
    "groupkeeper.api.admin.GroupLags",
    "groupkeeper.operations.lag.PartitionLag",
    "groupkeeper.operations.lag.LagStatus",
)

_LEFT_OUT = '["!^_", "!^[KV]$", "!_(CODES|SOURCES|TYPES)$", "!^(MECHANISMS|OPERATIONS|PERMISSIONS)$"]'
"""Names of no value: type variables, and tables of the codes in messages."""

_WITH_ALL_FIELDS = f"\n    options: {{show_if_no_docstring: true, members_order: source, filters: {_LEFT_OUT}}}"
"""For values: a field whose name says it all has no docstring, and the order is that of the constructor."""

ADMIN = ("groupkeeper.api.admin.Admin", "groupkeeper.api.tables.to_arrow", "groupkeeper.api.tables.to_pandas")

BROKER = ("groupkeeper.broker.broker.Broker", "groupkeeper.testing.background.BackgroundBroker")

REFERENCE = {
    "api/admin.md": ("Admin", ADMIN),
    "api/sync_admin.md": ("SyncAdmin", ("groupkeeper.api.sync_admin.SyncAdmin",)),
    "api/values.md": ("Values: what calls take and tell", VALUES),
    "api/errors.md": ("Errors", ("groupkeeper.base_error", "groupkeeper.client.errors", "groupkeeper.protocol.errors")),
    "api/broker.md": ("The broker in a program", BROKER),
}
"""Pages of the reference, with what each describes."""

_LINK = re.compile(r"(?<=\]\()(?P<target>[^)#\s:]+)(?P<part>#[^)\s]*)?(?=\))")
_OUTSIDE = re.compile(r"\[(?P<text>[^\]]+)\]\((?:\.\./)*(?P<place>(?:LICENSE|NOTICE|examples/)[^)]*)\)")
"""Links to files that aren't on the site."""


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to those of docs/."""
    from mkdocs.structure.files import File

    for name, text in pages():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links from docs/ to pages of the root lead to where those are on the site; those to other files become code."""
    depth = "../" * page.file.src_uri.count("/")
    for name, source in OWN_PAGES.items():
        markdown = markdown.replace(f"]({depth}../{source}", f"]({depth}{name}")
    return _OUTSIDE.sub(r"\g<text> (`\g<place>`)", markdown)


def pages() -> Iterable[tuple[str, str]]:
    """The pages by their names on the site."""
    for name, source in OWN_PAGES.items():
        yield name, _moved((ROOT / source).read_text())
    for name, (title, parts) in REFERENCE.items():
        options = _WITH_ALL_FIELDS * (parts is VALUES)
        yield name, f"# {title}\n\n" + "\n\n".join(f"::: {part}{options}" for part in parts) + "\n"


def _moved(text: str) -> str:
    """A page of the root as it is in docs/: links to docs/ lose that folder, those to other files are code instead."""
    names = {source: name for name, source in OWN_PAGES.items()}

    def target(link: re.Match[str]) -> str:
        place, part = link["target"], link["part"] or ""
        if place.startswith("docs/"):
            return place.removeprefix("docs/") + part
        return names.get(place, place) + part

    text = _LINK.sub(target, text)
    return _OUTSIDE.sub(r"\g<text> (`\g<place>`)", text)
