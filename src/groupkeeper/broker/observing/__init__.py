"""The broker's metrics by Kafka's names: their table, their values, and the endpoint that shows them.

Rates and times are in `groupkeeper.broker.meters`, what coordinators count in `groupkeeper.coordinator.kernel.result`
(`Meter`); both are noted where it happens.
"""
