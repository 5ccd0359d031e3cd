"""What an operator does with groups, free of presentation.

Printing is in `groupkeeper.cli`.
"""
