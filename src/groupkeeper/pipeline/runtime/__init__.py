"""The prerequisites of Spark: a Java, and this package on its workers.

Nothing here imports PySpark or depends on a table.
"""
