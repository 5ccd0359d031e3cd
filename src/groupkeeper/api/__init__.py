"""The names that programs import as `groupkeeper`: an admin client with combined calls, its blocking form, and tables.

An operator's rules are in `groupkeeper.operations`.
"""
