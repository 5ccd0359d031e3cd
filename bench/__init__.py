"""Benchmarks; `tools/bench.py` runs them."""
