"""Why a group does not move: the facts, for commands and pages. Which of them is the reason is decided in
`groupkeeper.rules.causes`; nothing here changes a cluster.
"""
