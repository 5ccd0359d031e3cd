"""Security of connections: security.protocol and related properties, by the names of Kafka's Java clients. `choice`
reads the properties; TLS and SASL are imported only when the properties require them.
"""
