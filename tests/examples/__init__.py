"""What `examples/` has is run, as a reader would run it. Code in the documentation is run under `docs`."""
