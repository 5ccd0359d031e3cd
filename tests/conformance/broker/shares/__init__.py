"""Queues: share groups of real consumers on the broker under test. Raw share requests are under `tests/broker` and
`differential/coordinator`.
"""
