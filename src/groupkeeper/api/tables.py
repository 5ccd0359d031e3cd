"""Results as tables of Apache Arrow and of pandas."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from groupkeeper.api.flattening import Layout, error_text, fields_of, is_row, row_class, rows_of

if TYPE_CHECKING:
    import pandas
    import pyarrow


def to_arrow(result: object, row: type | None = None) -> pyarrow.Table:
    """A result of any call as an Arrow table, with a row for each key, or each value of a list.

    Keys are columns (`group_id`, `topic` and `partition` …), and so are the fields of the values. Failures
    (`failed`) have rows, too, with the reason in the column `error`, which is null elsewhere; so has a broker that
    could not be asked. None is null, times are in ms, and other numbers are as the call tells them, −1 included. Fields
    that are collections, or have fields themselves, are lists and structs.

    `row`: the class of the values, so that their columns are there when there are none: `to_arrow(acls, Acl)`.

    Needs pyarrow (the extra `arrow`). Raises TypeError for anything else, and if values are of several classes.
    """
    arrow = _library("pyarrow", "arrow")
    rows = rows_of(result)
    layout = Layout(rows, row or row_class(result))
    values = [layout.values(each) for each in rows]
    schema = arrow.schema([(name, _arrow_type(arrow, hint)) for name, hint in layout.columns.items()])
    arrays = [arrow.array([_plain(each[name]) for each in values], schema.field(name).type) for name in layout.columns]
    return arrow.Table.from_arrays(arrays, schema=schema)


def to_pandas(result: object, row: type | None = None) -> pandas.DataFrame:
    """A result of any call as a DataFrame, with the rows and columns of `to_arrow`.

    Whole numbers stay whole where some are missing (Int64), texts are `string`, and True and False `boolean`.

    Needs pandas and pyarrow (the extra `pandas`).
    """
    frames = _library("pandas", "pandas")
    arrow = _library("pyarrow", "pandas")
    dtypes = {
        arrow.int64(): frames.Int64Dtype(),
        arrow.string(): frames.StringDtype(),
        arrow.bool_(): frames.BooleanDtype(),
        arrow.float64(): frames.Float64Dtype(),
    }
    return to_arrow(result, row).to_pandas(types_mapper=dtypes.get)


def _library(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        text = f"tables need {name}: pip install '.[{extra}]' in a checkout brings it"
        raise ModuleNotFoundError(text, name=name) from None


def _arrow_type(arrow: Any, hint: Any) -> pyarrow.DataType:
    """The Arrow type of an annotation."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        known = [each for each in arguments if each is not type(None)]
        return _arrow_type(arrow, str if str in known else known[0])
    if origin in (tuple, list, frozenset, set) or (isinstance(origin, type) and issubclass(origin, Sequence)):
        if origin is tuple and arguments[-1:] != (...,):
            return arrow.struct([(f"f{number}", _arrow_type(arrow, each)) for number, each in enumerate(arguments)])
        return arrow.list_(_arrow_type(arrow, arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return arrow.map_(*(_arrow_type(arrow, each) for each in arguments))
    if hasattr(hint, "_fields"):
        return arrow.struct([(name, _arrow_type(arrow, each)) for name, each in fields_of(hint).items()])
    for kind, name in ((bool, "bool_"), (int, "int64"), (float, "float64"), (bytes, "binary")):
        if isinstance(hint, type) and issubclass(hint, kind):
            return getattr(arrow, name)()
    if isinstance(hint, type) and issubclass(hint, str | Enum | Exception):
        return arrow.string()
    raise TypeError(f"no result of a call: {hint!r}")


def _plain(value: Any) -> Any:
    """A value as Arrow takes it."""
    match value:
        case Enum():
            return value.value if isinstance(value, str) else f"<{value.value.lower()}>"
        case Exception():
            return error_text(value)
        case Mapping():
            return [(_plain(key), _plain(each)) for key, each in value.items()]
        case tuple() if is_row(value):
            return {name: _plain(each) for name, each in zip(fields_of(type(value)), value, strict=True)}
        case frozenset():
            return sorted(_plain(each) for each in value)
        case tuple() | list():
            return [_plain(each) for each in value]
    return value
