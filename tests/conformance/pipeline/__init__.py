"""What the pipeline decodes of logs that Apache Kafka wrote. Tables made of them are under `spark`."""
