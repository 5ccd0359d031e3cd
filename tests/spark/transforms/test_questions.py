"""docs/questions.md: each question, as printed, gives in Spark SQL the answer that it gives in DuckDB."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.docs.operators_fleet import written
from tests.docs.questions import check_answer, preparation, questions


@pytest.mark.long
def test_answers(spark: SparkSession, tmp_path: Path) -> None:
    tables = written(tmp_path / "tables")
    exec(preparation("python").replace("tables/{", f"{tables}/{{"), {"spark": spark})
    for question in questions():
        check_answer(question.title, spark.sql(question.sql).toArrow())
