"""Settings by Kafka's names: tables, files, changes while the broker runs, how clients see them.

Settings that coordinators decide by are declared in `groupkeeper.coordinator.kernel.settings`, and taken into the
tables here. What a setting does is where it is used.
"""
