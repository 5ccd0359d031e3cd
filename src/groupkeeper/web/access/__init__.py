"""Users of the server: who sends a request, and which groups of which clusters they may see or change.

What a page shows is in `pages`, changes are in `changes`. ACLs of brokers have no part in it.
"""
