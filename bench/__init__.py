"""Benchmarks; `tools/bench.py` runs them. What they found is in docs/performance.md; nothing here is a test."""
