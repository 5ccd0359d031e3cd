"""Whether a directory of tables can be relied on, and what it may keep of people."""
