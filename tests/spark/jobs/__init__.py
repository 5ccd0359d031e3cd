"""`groupkeeper pipeline …` as it is run: snapshot, follow, progress, and what remains when it is killed. The rows of a
table belong to `transforms`.
"""
