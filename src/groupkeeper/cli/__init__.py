"""Command lines: argument parsing and pure renderers over the operations."""
