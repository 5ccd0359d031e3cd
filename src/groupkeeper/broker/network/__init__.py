"""Connections: listeners, framing, requests and their responses in order.

The handling of requests is in `apis`.
"""
