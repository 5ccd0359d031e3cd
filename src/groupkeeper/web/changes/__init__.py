"""Changes from pages: asked for in forms, planned, compared, applied and undone."""
