"""`groupkeeper serve` beside Apache's own tools. Its pages and its exporter on the embedded broker are under
`tests/web`.
"""
