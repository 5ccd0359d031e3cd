"""Message classes, one module per message: edit nothing here.

`python -m tools.protocol.generate` writes them from tools/protocol/schemas.txt.
"""
