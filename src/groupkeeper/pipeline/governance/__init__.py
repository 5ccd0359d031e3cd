"""Privacy of the tables in a directory, removal of groups' rows, and checks of the remaining rows.

The columns are in `tables`, files and formats in `storage`. `decode.privacy` leaves out or replaces what is not kept.
"""
