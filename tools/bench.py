"""Runs the benchmarks under bench/: each module there has a `main() -> None` that prints its figures.

Usage: python tools/bench.py [name ...]      (no name: all of them)
"""

import importlib.util
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent / "bench"


sys.path.insert(0, str(BENCH.parent))  # benchmarks take from one another, and from the tools


def run(path: Path) -> None:
    spec = importlib.util.spec_from_file_location(f"bench_{path.stem}", path)
    assert spec is not None, path
    assert spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    print(f"== {path.stem}: {(module.__doc__ or '').strip().splitlines()[0]}", flush=True)
    module.main()


def main(names: list[str]) -> int:
    found = {path.stem: path for path in sorted(BENCH.glob("*.py")) if not path.stem.startswith("_")}
    unknown = [name for name in names if name not in found]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)} (there are: {', '.join(found) or 'none'})", file=sys.stderr)
        return 1
    for name in names or found:
        run(found[name])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
