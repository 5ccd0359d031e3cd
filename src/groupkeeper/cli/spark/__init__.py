"""`groupkeeper spark`: the progress of Structured Streaming queries, and starting offsets for them.

Checkpoints are read by `groupkeeper.pipeline.checkpoints`, starting offsets found by `groupkeeper.operations.queries`.
The commands on tables are in `groupkeeper.cli.pipeline`.
"""
