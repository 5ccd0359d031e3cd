"""The rows of the tables, beside a slow replay in Python, traces written by hand, and what `Admin` reports. How a job
is run belongs to `jobs`.
"""
