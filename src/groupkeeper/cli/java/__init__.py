"""What Java does in the official commands and the others do without noticing: numbers, letters, patterns, exceptions.

No command is here.
"""
