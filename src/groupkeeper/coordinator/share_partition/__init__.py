"""The records of one share-partition that are in flight, as its leader keeps them (KIP-932).

It ties nothing to the group coordinator; sessions and storage are the broker's.
"""
