"""DataFrame → DataFrame, one module per table. Each ends with a `select` of its table's columns."""
