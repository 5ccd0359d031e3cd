"""Programs of consumer groups, with members of both protocols, on both brokers. Groups with classic members only are in
the room beside.
"""
