"""Random histories against a slow model that is easy to read. Those that need Apache Kafka as the judge are under
`differential`.
"""
