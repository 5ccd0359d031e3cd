"""The common part of groups with member epochs: consumer, share and streams groups.

Group epoch, target assignment, and the reconciliation of members with it. Code for a single type is in the folder of
that type. The checks of commits are in `offsets.member_epochs`.
"""
