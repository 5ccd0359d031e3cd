"""Users of the server: who sends a request, and which groups of which clusters they may see or change.

Pages are in `pages`, changes in `changes`. ACLs of brokers play no part here.
"""
