"""What developers and `make` run: generated documents, pictures, releases, recordings of Apache Kafka, benchmarks.

Nothing here is part of the package: `src` imports none of it.
"""
