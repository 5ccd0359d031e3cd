"""The dashboard and the report in a real browser. What their pages contain without one is under `unit/web` and
`unit/pipeline/report`.
"""
