"""Connections, frames, versions, faults on purpose, and answers that are legal but rare. What a request of one API does
belongs to the room of that API.
"""
