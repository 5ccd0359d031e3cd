"""Metrics and meters, and the endpoint that shows them.

What is counted is noted where it happens.
"""
