"""What Java does with text and patterns, done in Python. Java's own verdict is under `conformance/cli`."""
