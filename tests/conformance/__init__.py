"""Real client libraries and Apache's own tools and brokers, in rooms like those of `src`; here is what the rooms share:
brokers, clients, members. Most of it needs Java and is marked `conformance`; what needs neither belongs elsewhere.
"""
