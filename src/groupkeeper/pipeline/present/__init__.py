"""Tables of the current state: functions of Arrow tables, which tasks of Spark call; one module per table.

Tables that follow from new rows of the history are in `transforms`.
"""
