"""The jobs that commands run: they read, transform and write tables.

The transformations are in `transforms` and `present`.
"""
