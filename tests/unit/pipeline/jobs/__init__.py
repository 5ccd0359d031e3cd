"""What runs do with topics that were created again, and with clusters that were not measured.

Whole runs are under `spark/jobs`.
"""
