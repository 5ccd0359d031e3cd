"""Programs read columns by their place (CSV) and name: those of a version of a shape stay as they were."""

import importlib
import pkgutil
from pathlib import Path

from groupkeeper import cli
from groupkeeper.cli.framework.reports import Shape

RECORDED = Path(__file__).with_name("shapes.txt")


def found() -> dict[str, list[str]]:
    """The columns of each shape, by ``schema/version kind``."""
    modules = [importlib.import_module(each.name) for each in pkgutil.walk_packages(cli.__path__, f"{cli.__name__}.")]
    shapes = [each for module in modules for each in vars(module).values() if isinstance(each, Shape)]
    return {f"{each.name} {each.kind}": [column.name for column in each.columns] for each in shapes}


def test_columns_of_a_version_stay_where_they_are() -> None:
    own = found()
    lines = (line.partition(": ") for line in RECORDED.read_text().splitlines())
    recorded = {name: columns.split() for name, _, columns in lines}
    for name, columns in own.items():
        before = recorded.get(name)
        assert before is None or columns[: len(before)] == before, (
            f"{name}: new columns go to the end; otherwise `version` of the Shape grows"
        )
    text = "".join(f"{name}: {' '.join(columns)}\n" for name, columns in sorted(own.items()))
    assert RECORDED.read_text() == text, f"{RECORDED.name} is to have these lines:\n{text}"
