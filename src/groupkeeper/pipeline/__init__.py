"""The offsets topic of a fleet as tables, with PySpark. The only place that may import PySpark.

`tables` are the schemas; `decode` turns bytes into them without Spark; `kafka` reads clusters and has the Python Data
Source `groupkeeper`; `transforms` are functions DataFrame → DataFrame; `jobs` put them together; `session` starts
Spark. What is imported here costs nothing: modules with heavy imports are imported where they are used.
"""
