"""`groupkeeper plan`, `apply`, `undo` and `history`.

How plans are made and carried out is in `groupkeeper.operations.plans`.
"""
