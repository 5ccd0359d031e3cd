"""TLS and SASL of the client, every mechanism and failure, with a scripted broker. Apache Kafka's side is under
`conformance/client`.
"""
