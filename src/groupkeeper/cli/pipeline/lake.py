"""The arguments about tables of Delta Lake and Apache Iceberg."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from typing import Any

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.commands import ArgumentParser
from groupkeeper.cli.pipeline.parts import import_part
from groupkeeper.pipeline.errors import SourceError

_OF_A_LAKE = ("catalog", "namespace", "keep_versions")


def add_lake(parser: ArgumentParser) -> None:
    """Adds the arguments."""
    lake = parser.add_argument_group("lake")
    lake.add_argument(
        "--table-format", choices=["parquet", "delta", "iceberg"],
        help="delta or iceberg: the tables are of Delta Lake or Apache Iceberg; default: as in the last run, parquet "
        "for a new directory",
    )  # fmt: skip
    lake.add_argument(
        "--catalog", metavar="NAME",
        help="the Spark catalog for these tables, set up by --conf spark.sql.catalog.NAME…; default: Delta's are "
        "at DIR/TABLE, Iceberg's at DIR/iceberg/TABLE",
    )  # fmt: skip
    lake.add_argument("--namespace", metavar="NAME", help="where in the catalog the tables are; default: groupkeeper")
    lake.add_argument(
        "--keep-versions", type=values.hours,
        help="how long earlier versions of these tables can be read; default: 7d",
    )  # fmt: skip
    parser.add_argument(
        "--keep-rows", metavar="DURATION", type=_days,
        help="remove rows of tables that grow (history, events, rates, rewinds, measurements) once they are older "
        "than this, in whole days: 400d. The last row of each offset and member before that stays. 'never' turns this "
        "off; default: as in the last run, never for a new directory",
    )  # fmt: skip


_DAY_MS = 24 * 3600 * 1000


def _days(text: str) -> int:
    """A number of days; 0: for ever."""
    if text == "never":
        return 0
    days, rest = divmod(values.span_ms(text), _DAY_MS)
    if rest:
        raise ArgumentTypeError(f"{text!r}: expected whole days, for example 400d")
    return days


def check_lake(options: Namespace) -> None:
    """Refuses options that the run would refuse, before clusters are asked and Spark starts."""
    wanted, known = options.table_format, _known_format(options)
    given = [name for name in _OF_A_LAKE if getattr(options, name) is not None]
    if (wanted or known) not in ("delta", "iceberg") and given:
        options.refuse(f"--{given[0].replace('_', '-')} is for --table-format delta or iceberg")
    if options.namespace is not None and options.catalog is None:
        options.refuse("--namespace is for --catalog")
    if known is not None and wanted not in (None, known):
        options.refuse(
            f"argument --table-format: the tables in {options.tables} are of {known}: leave it out, or choose another "
            "directory"
        )


def keeping(options: Namespace) -> dict[str, Any]:
    """The jobs' arguments about the format of tables and how long to keep rows."""
    return {"lake": _lake_choice(options), "keep_days": getattr(options, "keep_rows", None)}


def _lake_choice(options: Namespace) -> Any:
    """The lake that the options select, for the jobs; None: no option."""
    wanted = getattr(options, "table_format", None)
    if wanted is None and not any(getattr(options, name, None) is not None for name in _OF_A_LAKE):
        return None  # as the last run had it
    if wanted == "parquet":
        return None
    output = import_part("storage.output")
    hours = output.VERSION_HOURS if options.keep_versions is None else options.keep_versions
    known = output.LakeChoice.of(import_part("storage.ledger").stored_lake(options.tables))
    if options.catalog is None and known is not None:
        return output.LakeChoice(known.place, hours)
    place = output.LakePlace(wanted or known.place.format, options.catalog)
    if options.namespace is not None:
        place = place._replace(namespace=options.namespace)
    return output.LakeChoice(place, hours)


def _known_format(options: Namespace) -> str | None:
    """The format of the tables, if their directory is on this machine."""
    try:
        found = import_part("storage.ledger").stored_lake(options.tables)
    except OSError:  # the run looks at the directory, and says why it cannot be used
        return None
    return None if found is None else str(found["format"])


def settings_of(options: Namespace) -> dict[str, str]:
    """Spark's settings from the options, and those that a lake needs. Raises SourceError."""
    given = dict(options.settings)
    wanted = getattr(options, "table_format", None) or _known_format(options)
    if wanted in (None, "parquet"):
        return given
    if options.remote is not None:  # the server has been started with what it needs
        return given

    try:
        found: dict[str, str] = import_part("runtime.lake").lake_settings(wanted, given)
    except SourceError as error:
        if getattr(options, "table_format", None) is not None:
            raise
        raise SourceError(f"the tables in {options.tables} are of {wanted}: {error}") from None
    return found
