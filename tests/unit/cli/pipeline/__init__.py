"""Options and progress of `groupkeeper pipeline`, without Spark. Its runs are under `spark/jobs`."""
