"""The job that reads clusters continuously, and rebuilds the tables when there is something new.

The tables that a refresh rebuilds are in `jobs`, as for every job.
"""
