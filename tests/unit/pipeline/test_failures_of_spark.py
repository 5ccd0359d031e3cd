"""What is said of Spark's own errors."""

from groupkeeper.pipeline.errors import first_line


class Raised(Exception):
    """As Py4J and PySpark have it: the text is the first line only, Java's trace is aside."""

    _stackTrace = (  # noqa: N815 - PySpark's name
        "org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown from the Python "
        'worker: Traceback (most recent call last):\n  File "worker.py", line 1, in main\n'
        "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different "
        "version: 3.12 than that in driver: 3.11, PySpark cannot run with different minor versions.\n"
    )


def test_workers_of_another_python() -> None:
    error = Raised(Raised._stackTrace.splitlines()[0])
    assert first_line(error) == "Spark's workers run Python 3.12 and this is 3.11: set PYSPARK_PYTHON to a Python 3.11"
