"""The transaction coordinator (`__transaction_state`).

It knows no groups; markers are written by the broker.
"""
