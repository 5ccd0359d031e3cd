"""The placement of partitions: replicas on nodes, and their leaders. `cluster/nodes.py` stops and starts nodes."""
