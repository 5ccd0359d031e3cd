"""Connections: listeners, framing, requests and their answers in order, faults on purpose.

What a request means is in `apis`.
"""
