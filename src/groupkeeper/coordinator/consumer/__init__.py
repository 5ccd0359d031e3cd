"""Groups of the consumer protocol (KIP-848), with the classic clients in them and the conversion from and to classic
groups.

Their committed offsets are in `offsets`.
"""
