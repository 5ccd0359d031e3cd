"""`groupkeeper spark`: how far queries of Structured Streaming are, and offsets for them to start from.

Checkpoints are read by `groupkeeper.pipeline.checkpoints`, starting offsets found by
`groupkeeper.operations.queries`. The commands on tables are in `groupkeeper.cli.pipeline`.
"""
