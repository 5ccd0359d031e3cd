"""Client quotas: the limits of clients' rates, and their recent usage.

Connections are muted in `network`. Metrics for people are in `observing`.
"""
