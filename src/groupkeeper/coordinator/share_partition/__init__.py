"""The records of one share-partition that are in flight, as its leader keeps them (KIP-932).

Members and their assignment are in `share`. Sessions, timers and storage are in `groupkeeper.broker.shares`.
"""
