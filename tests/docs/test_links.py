"""Every relative link in the documents leads somewhere, and every path and make target they name exists."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# A path of the repository in backquotes starts with one of its folders, so `out.csv` or `group.x.y` is not one.
NAMED_PATH = re.compile(r"`((?:src|tests|tools|docs|bench|requirements|\.ci)/[\w./-]*)`")
NAMED_TARGET = re.compile(r"`make (\w+)`|^ *make (\w+)", re.MULTILINE)


def prose(text: str) -> str:
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def broken_links(document: Path) -> Iterator[str]:
    for target in LINK.findall(prose(document.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = document if path == "" else document.parent / path
        if not found.exists() or (anchor and anchor not in anchors(found.read_text())):
            yield target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    assert list(broken_links(document)) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_paths_exist(document: Path) -> None:
    assert [name for name in NAMED_PATH.findall(document.read_text()) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_make_targets_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {one or other for one, other in NAMED_TARGET.findall(document.read_text())}
    assert named <= targets


def test_the_modules_of_the_architecture_exist() -> None:
    """Paths end like one of `src`; the rooms of a folder, which its row of the table names, are in it."""
    text, sources = (ROOT / "docs/architecture.md").read_text(), ROOT / "src/groupkeeper"
    named = [one for one in re.findall(r"`([\w/*]+(?:\.py|/))`", text) if not (ROOT / one).exists()]
    assert [one for one in named if not list(sources.glob(f"**/{one}"))] == []
    rooms = [
        f"{folder}{room}"
        for folder, row in re.findall(r"^\| `(\w+/)` \| (.*)", text, re.MULTILINE)
        for room in re.findall(r"`([\w/]+(?:\.py)?)`", row)
    ]
    assert len(rooms) > 50
    assert [
        one for one in rooms if not list(sources.glob(one.rstrip("/"))) and not (sources / f"{one}.py").exists()
    ] == []


def test_the_design_notes_are_listed() -> None:
    index = (ROOT / "docs/design/README.md").read_text()
    notes = {path.name for path in (ROOT / "docs/design").glob("*.md")} - {"README.md"}
    listed = LINK.findall(index)
    assert (len(listed), set(listed)) == (len(notes), notes)
