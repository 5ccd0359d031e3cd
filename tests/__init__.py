"""Tests, laid out like `src`: what shows the product from outside stands in a folder for each part, one piece alone
under `unit`. What compares with Apache Kafka or random programs has folders of its own: `conformance`, `differential`,
`property`, `scenarios`, `simulation`, `rig`.
"""
