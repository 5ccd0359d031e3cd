"""`groupkeeper spark` and its commands."""

from __future__ import annotations

from groupkeeper.cli.framework.commands import CommandName, Family

FAMILY = Family(
    {
        "lag": CommandName("show how far queries have read, by their checkpoints", "spark.lag:LAG"),
        "starting-offsets": CommandName(
            "print where a query is to start: at a group's offsets, a checkpoint's, or a time",
            "spark.starting_offsets:STARTING_OFFSETS",
        ),
    },
    "Queries of Spark Structured Streaming commit to no group: their offsets are in checkpoints. Spark is not needed "
    "for these commands (docs/spark.md).",
)
