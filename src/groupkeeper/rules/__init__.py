"""What numbers about groups mean: pure functions of plain values, for commands, `serve`, alerts, the report and the
coordinators. No I/O, no clock, no SQL, and nothing of the package is imported here.

What asks clusters, keeps state between polls or prints belongs elsewhere: it passes facts in and shows the verdict.
"""
