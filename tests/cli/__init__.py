"""Commands as processes or at a terminal, on the embedded broker, in rooms like those of `src/groupkeeper/cli`. Usage
errors and layout, which need no broker, are under `unit/cli`; commands on Apache Kafka under `conformance/cli`.
"""
