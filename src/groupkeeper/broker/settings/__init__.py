"""The broker's settings by Kafka's names: their tables, their changes at run time, their descriptions for clients.

`groupkeeper.coordinator.kernel.settings` declares the settings that coordinators use; the tables here include them. The
effect of a setting is implemented where it is used.
"""
