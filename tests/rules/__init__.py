"""Cases of groupkeeper.rules as text: facts, an arrow, the verdict. A case stands once, and runs against the rules and
each surface that shows the verdict.

Tests of how a surface gets its facts from a cluster belong to that surface.
"""
