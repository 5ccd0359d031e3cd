"""The tour of `make demo`. Nothing else."""
