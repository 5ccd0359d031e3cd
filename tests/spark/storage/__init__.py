"""Files of tables: merged, or reached through Hadoop. Lake formats are under `tests/lake`."""
