"""The collectors' snapshots over HTTP: metrics, and how the program itself is."""
