"""The drop-in commands beside recordings of Apache's own tools. Their options and texts without a broker are under
`unit/cli/dropin`.
"""
