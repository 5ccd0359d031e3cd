"""Parts of the broker without sockets, all rooms of `src/groupkeeper/broker` in one folder. Requests over the wire are
under `tests/broker`.
"""
