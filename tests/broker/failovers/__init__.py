"""What holds while nodes of a cluster are not well: cut off, and at random. What happens to nodes that are well, and to
those in sync, is in the folder above.
"""
