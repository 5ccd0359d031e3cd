"""The meaning of numbers about groups: pure functions of plain values, for commands, `serve`, alerts, the report and
the coordinators. No I/O, no clock, no SQL, no imports from the package. Code that asks clusters, keeps state between
polls or prints belongs elsewhere: it passes facts in and shows the status.
"""
