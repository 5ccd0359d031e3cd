"""Generated message classes, one module per message."""
