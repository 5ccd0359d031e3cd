"""Committed offsets of all groups: commit, fetch, delete, expire, also in transactions.

What differs between types of groups is in their `OffsetRules`: in `member_epochs` for consumer and streams groups, in
`offsets` of the folder `classic` for classic ones; share groups commit none. How offsets are kept in memory is in
`kernel.offset_store`.
"""
