"""What all commands share: colours, progress, signals, completion. Rows of one command belong to its own room."""
