"""The common part of groups with member epochs: consumer, share and streams groups.

Group epoch, target and members' way to it; the code of a single type is in the folder of that type. Their checks of
commits are in `offsets.member_epochs`.
"""
