"""What `examples/` has is run, as a reader would run it."""
