"""`groupkeeper plan`, `apply`, `history` and `undo`, and the journal. How a plan is computed is under
`unit/operations`.
"""
