"""The Spark settings for tables of Delta Lake or Apache Iceberg."""

from __future__ import annotations

import os
from collections.abc import Mapping

from groupkeeper.pipeline.errors import SourceError

_PACKAGES = {
    "delta": {"4.2": "io.delta:delta-spark_4.2_2.13:4.4.0"},
    "iceberg": {"4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"},
}
"""By format and version of Spark, the packages that tests run with."""

_SETTINGS = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "iceberg": {"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
}
_JOINED = ("spark.sql.extensions", "spark.jars.packages")


def lake_settings(name: str, given: Mapping[str, str], version: str | None = None) -> dict[str, str]:
    """The `given` settings, and those that the format called `name` needs in this `version` of Spark (None: the version
    of the installed PySpark). Given jars replace the format's package. Raises SourceError if there is no package.
    """
    needed = dict(_SETTINGS[name])
    jars = ",".join(given.get(key, "") for key in ("spark.jars", "spark.jars.packages"))
    if name not in jars and "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit has its own
        needed["spark.jars.packages"] = _package(name, version or _installed())
    joined = {key: ",".join(filter(None, (needed[key], given.get(key)))) for key in _JOINED if key in needed}
    return {**needed, **given, **joined}


def _installed() -> str:
    import pyspark

    return str(pyspark.__version__)


def _package(name: str, version: str) -> str:
    packages = _PACKAGES[name]
    found = packages.get(".".join(version.split(".")[:2]))
    if found is None:
        (other,) = packages
        raise SourceError(
            f"no package of {name} is known for Spark {version}: install the extra {name} (pyspark {other}), or name a "
            "package by --conf spark.jars.packages=…"
        )
    return found
