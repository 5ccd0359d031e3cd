"""Tables of the current state: functions of Arrow tables, which tasks of Spark call; one module per table.

What follows from new rows of the history is in `transforms`.
"""
