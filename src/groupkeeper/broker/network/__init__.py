"""Connections: listeners, framing, requests and their answers in order, deliberate faults.

The handling of requests is in `apis`.
"""
