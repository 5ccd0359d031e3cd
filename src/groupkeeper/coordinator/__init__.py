"""Coordinators as state machines: no I/O, no clock, no random numbers, no logging.

`coordinator` is the group coordinator: it takes requests and timers. Each group type has a folder. Operations that
cover all group types are in the modules of this folder: `views` lists and deletes groups, `refusals` answers
refused requests. The transaction coordinator and the share coordinator are in the folders `transactions` and
`share_state`; `share_partition` tracks the records that the leader of a share-partition has handed out. The
drivers, which connect all of these to logs, timers and requests, are in `groupkeeper.broker.coordination` and
`groupkeeper.broker.shares`, not here.
"""
