"""Pages, queries and exposition of `groupkeeper serve` on given views. The running server is under `tests/web`."""
