"""The calls of `Admin` with a scripted broker: what is asked, and what comes of each answer. Connections and routing
below them are in `tests/unit/client`, real brokers under `conformance/client`.
"""
