"""Spark sessions, Java, options, shipping code to executors, plans from tables.

Nothing here knows a table.
"""
