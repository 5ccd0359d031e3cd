"""Which records a run of `follow` takes. Its runs are under `spark/jobs`."""
