"""What Spark is started with for tables of a lake, and what does not go together on the command line."""

import pytest

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.runtime.lake import lake_settings

DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"


def test_the_package_is_that_of_the_version_of_spark() -> None:
    assert lake_settings("delta", {}, "4.2.1")["spark.jars.packages"] == DELTA
    assert "iceberg-spark-runtime-4.1" in lake_settings("iceberg", {}, "4.1.4")["spark.jars.packages"]
    with pytest.raises(SourceError, match=r"no package of delta is known for Spark 4\.3\.0: install the extra delta"):
        lake_settings("delta", {}, "4.3.0")


def test_what_is_given_stays() -> None:
    given = {"spark.jars.packages": "a:b:1", "spark.sql.extensions": "mine", "spark.driver.memory": "2g"}
    found = lake_settings("delta", given, "4.2.1")
    assert found["spark.jars.packages"] == f"{DELTA},a:b:1"
    assert found["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension,mine"
    assert found["spark.driver.memory"] == "2g"
    assert found["spark.sql.catalog.spark_catalog"].endswith("DeltaCatalog")
    catalog = {"spark.sql.catalog.spark_catalog": "mine"}
    assert lake_settings("delta", catalog, "4.2.1")["spark.sql.catalog.spark_catalog"] == "mine"


def test_jars_that_are_given_take_the_place_of_the_package() -> None:
    jars = {"spark.jars": "/jars/delta-spark_4.3.jar"}
    assert "spark.jars.packages" not in lake_settings("delta", jars, "4.3.0")
    own = {"spark.jars.packages": "io.delta:delta-spark_4.3_2.13:5.0"}
    assert lake_settings("delta", own, "4.3.0")["spark.jars.packages"] == own["spark.jars.packages"]


def test_spark_submit_brings_its_own_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert "spark.jars.packages" not in lake_settings("delta", {}, "4.3.0")
