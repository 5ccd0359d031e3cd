"""Privacy of the tables in a directory, removal of groups' rows, and checks of the remaining rows.

The columns are in `tables`, files and formats in `storage`. `decode.privacy` drops or replaces fields not kept.
"""
