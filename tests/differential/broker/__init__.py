"""Topics, logs, settings and versions on both brokers. Groups and transactions are under `differential/coordinator`."""
