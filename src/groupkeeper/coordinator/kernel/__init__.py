"""What all types of groups need: results, timers, settings, topics as coordinators see them.

`Settings` and `Meter` list those of all types. Rules of a type of group are in its folder: nothing here imports one.
"""
