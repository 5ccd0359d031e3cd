"""Our commands beside Apache's own, on Apache Kafka. The same on the embedded broker, from recordings, is under
`cli/dropin`.
"""
