"""Connections: listeners, framing, requests and their answers in order.

The handling of requests is in `apis`.
"""
