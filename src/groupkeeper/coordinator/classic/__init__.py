"""Groups of the classic protocol (JoinGroup, SyncGroup, Heartbeat, LeaveGroup).

Their conversion to consumer groups and back is in `consumer`.
"""
