"""What the tables of a directory keep of people, how rows of groups are removed, and whether the rest is reliable.

The columns are in `tables`, files and lakes in `storage`. `decode.privacy` leaves out or replaces what is not kept.
"""
