"""One module for each command or table: what it may say by the facts that the actors wrote down. They change nothing
but what they are asked to plan.
"""
