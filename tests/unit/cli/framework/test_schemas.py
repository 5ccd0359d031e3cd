"""The schemas of reports: each column has a meaning, and each schema is in the reference."""

import importlib
import pkgutil

from tools import cli_reference

from groupkeeper import cli
from groupkeeper.cli.framework.reports import Schema
from groupkeeper.cli.groups import statuses, trends

OF_OPTIONS = {"--with-status": statuses.COLUMNS, "--trend=20ms": trends.COLUMNS}
"""Columns that only an option fills."""
CLEAR = {"topic", "partition", "time", "bootstrap_server", "client_id", "member_id", "host", "rack_id", "state", "why"}
CLEAR |= {"new_offset", "producer_epoch", "record_time"}
"""Columns whose names say it all."""


def schemas() -> list[Schema]:
    modules = [importlib.import_module(each.name) for each in pkgutil.walk_packages(cli.__path__, f"{cli.__name__}.")]
    return [each for module in modules for each in vars(module).values() if isinstance(each, Schema)]


def test_columns_have_a_meaning() -> None:
    empty = {column.name for schema in schemas() for column in schema.columns if not column.meaning} - CLEAR
    assert not empty, f"say in the second argument of Column what these are, and what null means: {', '.join(empty)}"


def test_the_reference_describes_every_schema() -> None:
    described = [schema for _, schema, _ in cli_reference.SCHEMAS]
    missing = {schema.name for schema in schemas() if schema not in described}
    assert not missing, f"add these to SCHEMAS of tools/cli_reference.py, then run `make docs`: {', '.join(missing)}"
