"""Long random lives on virtual time, and bugs put into the source that checkers must find; one room for each protocol,
and `shells` for the broker around them. What the rooms share is here.
"""
