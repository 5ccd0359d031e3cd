"""The placement of partitions: their replicas on nodes, and their leaders. `cluster.py` stops and starts nodes."""
