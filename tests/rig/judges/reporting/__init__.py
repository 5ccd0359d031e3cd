"""`pipeline report`: its figures beside the tables, and its findings, lines and sections beside the facts.

The tables are judged in `pipeline.py` of the folder above.
"""
