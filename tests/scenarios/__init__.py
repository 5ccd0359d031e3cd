"""Conversations with a coordinator, step by step, in text files; `runner` says how they are written.

`python -m tests.scenarios FILE` shows what differs from a file, and with `--rewrite` also writes it there. Random
conversations are under `simulation`.
"""
