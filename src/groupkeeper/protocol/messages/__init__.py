"""Message classes, one module per message. tools/protocol/generate.py writes them: edit nothing here."""
