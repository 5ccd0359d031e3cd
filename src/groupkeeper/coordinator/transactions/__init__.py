"""The transaction coordinator: transactional ids with their producers, in `__transaction_state`.

Groups are not part of it. `groupkeeper.broker.coordination` writes the markers.
"""
