"""Pages of the report from given tables. The tables are made under `spark/transforms`."""
