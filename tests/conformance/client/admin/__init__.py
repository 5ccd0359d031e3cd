"""Calls of `Admin` on configs, partitions and records, on the embedded broker and on Apache Kafka. Those on groups are
under `conformance/client`.
"""
