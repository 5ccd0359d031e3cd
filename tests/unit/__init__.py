"""One piece of `src` alone, in the folder of its part. In `cli`, `client` and `pipeline` there is a folder for each
room; the other parts have one for all their rooms. What needs a whole broker or a process has a folder of its own
beside this one.
"""
