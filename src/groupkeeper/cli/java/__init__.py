"""Java's behaviour in the official commands: numbers, letters, patterns, exceptions.

No command is here.
"""
