"""The collectors of `groupkeeper serve` on the embedded broker. Their parts without a broker are under `unit/live`, the
pages under `tests/web`.
"""
