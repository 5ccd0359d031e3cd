"""Which partitions and offsets are read, and how they are fetched. What their bytes mean belongs to `decode`."""
