"""The glossary as a page: docs/glossary.md without the words of the code, which comes with the package."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from importlib import resources

from groupkeeper.web.pages import parts
from groupkeeper.web.pages.parts import ANONYMOUS, Viewer

NAME = "glossary.md"


def glossary_page(viewer: Viewer = ANONYMOUS) -> str:
    """The whole page."""
    return parts.page("What the words mean", _body(), [("Consumer groups", "/")], viewer)


@cache
def _body() -> str:
    text = resources.files("groupkeeper.web").joinpath("files", NAME).read_text(encoding="utf-8")
    blocks = [block for block in text.split("\n\n") if block.strip() and not block.startswith("# ")]
    return "".join(map(_block, blocks))


def _block(block: str) -> str:
    if block.startswith("## "):
        return f"<h2>{_inline(block[3:])}</h2>"
    if not block.startswith("|"):
        return f'<p class="prose">{_inline(" ".join(block.split()))}</p>'
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in block.splitlines()]
    terms = "".join(f"<dt>{_inline(term)}</dt><dd>{_inline(meaning)}</dd>" for term, meaning in rows[2:])
    return f'<dl class="card words">{terms}</dl>'


def _inline(text: str) -> str:
    """A line as HTML: names in code, and links as plain text, as the other documents are not served."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", escape(text.strip(), quote=False))
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", text)
