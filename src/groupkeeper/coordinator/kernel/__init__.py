"""What every kind of group needs and none of them is: results, timers, settings, topics as coordinators see them.

Nothing here may know a type of group.
"""
