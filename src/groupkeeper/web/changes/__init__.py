"""Changes from pages: requested with forms, planned, compared, applied and undone.

How plans are made and carried out is in `groupkeeper.operations.plans`.
"""
