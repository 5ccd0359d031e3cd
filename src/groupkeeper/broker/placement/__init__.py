"""Where partitions are: on which nodes, and which of them leads. What happens to nodes is in `cluster.py`."""
