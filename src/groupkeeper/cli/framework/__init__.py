"""What all commands share: the table of commands, options, connections, output, errors, completion.

Nothing here knows one command's purpose.
"""
