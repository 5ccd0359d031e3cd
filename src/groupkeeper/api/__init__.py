"""What programs import as `groupkeeper`: the admin client with what takes several calls, a form that blocks, tables.

An operator's rules are in `groupkeeper.operations`.
"""
