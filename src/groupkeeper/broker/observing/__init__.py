"""The broker's metrics by Kafka's names: their table, their values, and the endpoint that shows them.

Rates and times are defined in `groupkeeper.broker.meters`, the counts of coordinators in
`groupkeeper.coordinator.kernel.result` (`Meter`); both are recorded where the events happen.
"""
