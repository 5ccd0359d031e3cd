"""Common parts of all commands: the table of commands, options, connections, output, errors, completion.

Nothing here belongs to a single command.
"""
