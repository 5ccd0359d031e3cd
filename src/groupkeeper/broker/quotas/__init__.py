"""Client quotas: the rates at which clients may send and receive, and how much they used.

Muting a connection is `network`'s. What is measured for people is `observing`'s.
"""
