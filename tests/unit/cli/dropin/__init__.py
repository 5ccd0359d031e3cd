"""Options, usage errors and texts of the drop-in commands. Their output beside Apache's is under `cli/dropin`."""
