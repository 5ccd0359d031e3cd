"""``groupkeeper spark``: queries of Structured Streaming, which keep their offsets in checkpoints."""
