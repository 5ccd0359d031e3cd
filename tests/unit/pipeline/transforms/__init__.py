"""Bytes of logs become rows. Which bytes are fetched belongs to `kafka`."""
