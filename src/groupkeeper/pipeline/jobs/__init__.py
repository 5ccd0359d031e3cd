"""What a command runs: reads, transforms, writes tables.

The transformations are in `transforms` and `present`.
"""
