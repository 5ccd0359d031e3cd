"""Coordinators as state machines: no I/O, no clock, no random numbers, no logging.

`coordinator` is the group coordinator: it takes requests and timers, and has a folder for each type of group. What it
answers for groups of all types at once is in the modules of this folder: lists and deletion of groups in `views`,
answers to requests that are refused in `refusals`. The transaction coordinator and the share coordinator have the
folders `transactions` and `share_state`; the records that the leader of a share-partition has handed out are in
`share_partition`. Logs, timers and requests meet all of them in `groupkeeper.broker.coordination` and
`groupkeeper.broker.shares`, not here.
"""
