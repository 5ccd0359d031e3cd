"""What is said of Spark's own errors."""

from groupkeeper.pipeline.errors import first_line


class Raised(Exception):
    """As Py4J and PySpark have it: the text of a worker, Java's trace is aside."""

    def __init__(self, raised: str) -> None:
        said = "An exception was thrown from the Python worker:"
        trace = f'Traceback (most recent call last):\n  File "worker.py", line 1, in main\n{raised}\n'
        super().__init__(f"{said}\n{trace}")
        self._stackTrace = f"org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] {said} {trace}"


def test_what_a_worker_raised() -> None:
    assert first_line(Raised("ValueError: no")) == "An exception was thrown from the Python worker: ValueError: no"


def test_a_worker_without_a_module() -> None:
    assert first_line(Raised("ModuleNotFoundError: No module named 'pyarrow'")) == (
        "the Python of Spark's workers lacks the module pyarrow: install it there, or let PYSPARK_PYTHON name another"
    )


def test_workers_without_that_python() -> None:
    """As Java 17 and Java 21 have it."""
    for told in ("error=2, No such file or directory", "Exec failed, error: 2 (No such file or directory) "):
        error = Exception(f'Lost task 0.0: java.io.IOException: Cannot run program "/no/python": {told}\n\tat x')
        assert first_line(error) == (
            "Spark's workers cannot run /no/python (No such file or directory): set PYSPARK_PYTHON to a Python that "
            "the workers have"
        )


def test_workers_of_another_python() -> None:
    error = Raised(
        "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different "
        "version: 3.12 than that in driver: 3.11, PySpark cannot run with different minor versions."
    )
    assert first_line(error) == "Spark's workers run Python 3.12 and this is 3.11: set PYSPARK_PYTHON to a Python 3.11"
