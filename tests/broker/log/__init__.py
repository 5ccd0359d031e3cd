"""Records over the wire: produce, fetch, fetch sessions, times of records, cleaning. How one log keeps them in files is
under `unit/broker`.
"""
