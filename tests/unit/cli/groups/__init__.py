"""Options and usage errors of `groupkeeper groups`. Its rows are under `cli/groups`."""
