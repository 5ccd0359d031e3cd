"""What all types of groups need: results, timers, settings, topics as coordinators see them.

Nothing here depends on a type of group.
"""
