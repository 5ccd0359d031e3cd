"""`groupkeeper serve` as a process: exporter, API, pages, usage errors. How pages look in a browser is under
`tests/browser`.
"""
