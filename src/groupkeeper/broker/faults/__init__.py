"""What tests of applications inject into a broker: faults of requests, and legal replies that are rare.

Outages of whole nodes are in `cluster`.
"""
