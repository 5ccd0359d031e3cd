"""The group coordinator as a state machine: no I/O, no clock, no random numbers, no logging.

Logs, timers and requests meet it in `groupkeeper.broker.coordination`.
"""
