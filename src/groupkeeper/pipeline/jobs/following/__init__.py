"""The job that reads clusters as they write, and rebuilds the tables when there is something new.

What one refresh rebuilds is in `jobs`, as for every job.
"""
