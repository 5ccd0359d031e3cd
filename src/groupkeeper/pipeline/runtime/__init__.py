"""What Spark needs and does not know of tables: a Java, a Python for its workers, packages of formats; and descriptions
of its jobs.

Only `executors` imports PySpark.
"""
