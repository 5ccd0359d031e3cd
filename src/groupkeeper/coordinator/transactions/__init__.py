"""The transaction coordinator: transactional ids with their producers, in `__transaction_state`.

Groups have no part in it. Markers are written by `groupkeeper.broker.coordination`.
"""
