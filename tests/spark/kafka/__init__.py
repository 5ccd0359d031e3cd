"""The source `groupkeeper` inside Spark: which records it reads, and up to which instant. What tables make of them
belongs to `transforms`.
"""
