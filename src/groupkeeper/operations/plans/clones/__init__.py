"""Clones: what a group has committed in one log, said in the offsets of another one with the same records."""
