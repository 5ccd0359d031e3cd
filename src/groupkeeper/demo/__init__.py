"""A tour on real input: a broker, producers, consumers of two client libraries, and the commands on their groups.

No other package imports it.
"""
