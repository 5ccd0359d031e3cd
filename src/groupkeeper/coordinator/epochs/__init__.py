"""What groups whose members have epochs have in common: consumer, share and streams groups.

Group epoch, target and members' way to it; what a type has of its own is in its room.
"""
