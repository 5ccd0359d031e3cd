"""Pages for people: written on the server from snapshots, in the report's look, without scripts. Pure functions."""
