"""One piece of `src` alone, in the folder of the same name. What needs a whole broker or a process has a folder of its
own beside this one.
"""
