"""The points of the specification, and the tests that name them in comments.

python -m tests.specification            each point, with the places that name it
python -m tests.specification K88-11     one of them
"""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

TESTS = Path(__file__).parent
FILE = TESTS / "specification.toml"
NAMED = re.compile(r"\b(K88|K496|K518|K1099|K122|G[A-Z])-(X?)(\d+)(?: … \1-\2(\d+))?(?![\w-])")
"""A point, or several of them: `GO-20 … GO-23`."""


def points() -> dict[str, str]:
    """Their texts, by id."""
    parts = tomllib.loads(FILE.read_text(encoding="utf-8")).values()
    return {name: text for part in parts if isinstance(part, dict) for name, text in part.items()}


def without_tests() -> list[str]:
    return list(tomllib.loads(FILE.read_text(encoding="utf-8"))["without_tests"])


def named_in(text: str) -> Iterator[str]:
    for prefix, kind, first, last in NAMED.findall(text):
        for number in range(int(first), int(last or first) + 1):
            yield f"{prefix}-{kind}{number:0{len(first)}}"


def places_by_point() -> Mapping[str, list[str]]:
    """`file:line` of the tests and scenarios that name a point."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("*")):
        if path.suffix in (".py", ".txt") and path.name not in ("specification.py", "test_specification.py"):
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                for name in named_in(line):
                    found.setdefault(name, []).append(f"tests/{path.relative_to(TESTS)}:{number}")
    return found


def main(wanted: list[str]) -> int:
    texts, places = points(), places_by_point()
    for name in wanted or texts:
        if name not in texts:
            print(f"there is no point {name} in tests/specification.toml", file=sys.stderr)
            return 1
        print(f"{name}  {texts[name]}", *(f"    {place}" for place in places.get(name, ["no test names it"])), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
