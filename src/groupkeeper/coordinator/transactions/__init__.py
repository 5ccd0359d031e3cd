"""The transaction coordinator (`__transaction_state`).

Groups have no part in it; markers are written by the broker.
"""
