"""`groupkeeper pipeline`: questions, progress and reports on the screen.

The work is done in `groupkeeper.pipeline`; Spark is only imported by what runs it.
"""
