"""Members of the classic protocol, their coordinator, the network between them, and checkers. The world, the plan and
the events are those of the consumer protocol's room, too.
"""
