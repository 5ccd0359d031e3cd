"""The official commands, to the letter: kafka-consumer-groups and its family.

The commands of `groupkeeper` are in the other rooms.
"""
