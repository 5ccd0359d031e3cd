"""Which Java, session and lake libraries are used. Spark itself is under `spark/runtime`."""
