"""Committed offsets of all groups: commit (also in transactions), fetch, delete, expire.

Differences between group types are in their `OffsetRules`: in `member_epochs` for consumer and streams groups, in
`classic.offsets` for classic groups; share groups have no committed offsets. The storage in memory is in
`kernel.offset_store`.
"""
