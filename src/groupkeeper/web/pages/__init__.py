"""Pages for people: written on the server from snapshots, in the report's look, by pure functions.

Routes and what is sent beside HTML are in `groupkeeper.web.app`, plans made from forms in `changes`.
"""
