"""Client quotas: the rates at which clients may send and receive, and how much they used.

Connections are muted in `network`. Metrics for people are in `observing`.
"""
