"""Groups of the classic protocol (JoinGroup, SyncGroup, Heartbeat, LeaveGroup).

How they become consumer groups and back is in `consumer`.
"""
