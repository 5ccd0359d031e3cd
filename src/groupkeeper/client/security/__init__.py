"""How connections are secured: security.protocol and what belongs to it, by the names of Kafka's Java clients.

`choice` reads the properties; TLS and SASL are imported only when these require them.
"""
