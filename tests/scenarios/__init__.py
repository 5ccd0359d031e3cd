"""Conversations with a coordinator, step by step, in text files. Random ones are under `simulation`."""
