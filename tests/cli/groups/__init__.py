"""`groupkeeper groups …`: rows, problems, exit statuses, for groups of all types. Plans that change offsets are under
`cli/plans`.
"""
