"""What `follow` does about clusters that are slow, silent or away. How it reads the wire is in `tests/spark/jobs`."""
