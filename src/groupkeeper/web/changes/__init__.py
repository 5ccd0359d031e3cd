"""Changes from pages: requested with forms, planned, compared, applied and undone."""
