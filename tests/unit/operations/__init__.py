"""Plans, lag, selections and times on given answers. Commands that carry them out are under `tests/cli`."""
