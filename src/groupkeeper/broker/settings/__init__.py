"""The broker's settings by Kafka's names: their tables, their changes at run time, their descriptions for clients.

Settings that coordinators use are declared in `groupkeeper.coordinator.kernel.settings`, and added to the tables here.
The effect of a setting is implemented where it is used.
"""
