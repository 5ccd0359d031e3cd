"""The offsets topics of a fleet as tables, with PySpark. Only this package may import PySpark.

`tables` has the schemas; `decode` turns bytes into rows without Spark; `kafka` reads clusters and has the Python Data
Source `groupkeeper`; `transforms` and `present` compute rows; `jobs` combines them; `session` starts Spark.
Imports of this package are cheap: modules with heavy imports are imported where they are used.
"""
