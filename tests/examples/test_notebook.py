"""examples/notebook: its cells run in order; the last value of a cell is what a notebook shows."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pandas

from groupkeeper import SyncAdmin
from groupkeeper.testing.background import BackgroundBroker

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples/notebook/lag.ipynb"


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """The value of the last expression, None if the cell ends with a statement."""
    program = ast.parse(source)
    last = program.body.pop() if isinstance(program.body[-1], ast.Expr) else None
    exec(compile(program, str(NOTEBOOK), "exec"), names)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)
    return None


async def test_the_notebook_runs() -> None:
    """In a running loop, as in Jupyter."""
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code")
    names: dict[str, Any] = {}
    with BackgroundBroker() as broker:
        shown = [
            run_cell("".join(cell["source"]).replace("localhost:9092", broker.bootstrap_servers), names)
            for cell in cells
            if cell["cell_type"] == "code"
        ]
        with SyncAdmin(broker.bootstrap_servers) as admin:
            assert (admin.list_groups().all(), admin.list_topics()) == ({}, [])
    frames = [each for each in shown if isinstance(each, pandas.DataFrame)]
    assert frames[0]["group_id"].tolist() == ["notebook-audit"] * 2 + ["notebook-billing"] * 2
    assert frames[0]["lag"].tolist() == [0] * 4
    assert frames[0]["error"].isna().all()
    assert frames[1]["sum"].to_dict() == {"notebook-audit": 0, "notebook-billing": 0}
    assert frames[2].loc["notebook-orders", "cleanup.policy"] == "delete"
