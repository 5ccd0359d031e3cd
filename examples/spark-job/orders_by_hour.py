"""What a topic has by hour, and the last commit of each group in it: an example of a job on Spark."""

import argparse

from pyspark.sql import functions as F

from groupkeeper.pipeline.session import start_session


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("servers", help="host:port,host:port")
    parser.add_argument("topic")
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    spark = start_session("orders by hour", master=options.master)
    servers = {"kafka.bootstrap.servers": options.servers}

    records = spark.read.format("groupkeeper").options(**servers, subscribe=options.topic).load()
    by_hour = records.groupBy(F.date_trunc("hour", "timestamp").alias("hour")).count().orderBy("hour")
    for row in by_hour.collect():
        print(f"{row.hour:%Y-%m-%d %H:%M}  {row['count']} records")

    # Keys of types 0 and 1 are commits; one that was deleted has no offset.
    decoded = spark.read.format("groupkeeper").options(**servers, rows="decoded").load()
    commits = decoded.where(F.col("record_type").isin(0, 1) & (F.col("topic") == options.topic))
    last = commits.groupBy("group_id", "partition").agg(F.max_by("committed_offset", "log_offset").alias("committed"))
    for row in last.where("committed IS NOT NULL").orderBy("group_id", "partition").collect():
        print(f"{row.group_id} is at {row.committed} in partition {row.partition}")
    spark.stop()


if __name__ == "__main__":
    main()
