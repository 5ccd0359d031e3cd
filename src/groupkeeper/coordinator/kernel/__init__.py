"""The common part of all group types: results, timers, settings, and the topics as coordinators see them.

`Settings` and `Meter` cover all group types. The rules of a group type are in its folder: nothing here imports them.
"""
