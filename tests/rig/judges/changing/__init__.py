"""Changes that are made from pages: planned, applied, found in the journal, read on from, and taken back. Commands that
change offsets are judged in the folder above.
"""
