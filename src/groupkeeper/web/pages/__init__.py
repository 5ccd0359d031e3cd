"""Pages for people: written on the server from snapshots, in the report's look, by pure functions.

Routes and other responses are in `groupkeeper.web.app`, plans made from forms in `changes`.
"""
