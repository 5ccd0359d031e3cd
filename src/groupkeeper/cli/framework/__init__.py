"""What all commands share: the table of commands, options, connections, output, errors, completion.

Nothing here belongs to a single command.
"""
