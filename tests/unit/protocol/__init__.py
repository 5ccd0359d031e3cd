"""Messages, primitives, record batches and compression, beside Apache's own serialiser. Connections are under
`unit/client` and `tests/broker/network`.
"""
