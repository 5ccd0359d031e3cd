"""Plans: committed offsets before and after a change. They are made, checked, applied, journalled and undone here
(docs/plans.md).

Options and tables of the commands are in `groupkeeper.cli.plans`, forms of pages in `groupkeeper.web.changes`.
"""
