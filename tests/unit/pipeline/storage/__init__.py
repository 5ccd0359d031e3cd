"""Ledger and lease of a folder of tables. What Spark writes into it is under `spark/storage`."""
