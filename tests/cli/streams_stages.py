"""Stages with streams groups: what the official tool prints of them, and what it changes."""

from tests.cli.stages import RECORDS, Stage
from tests.cli.streams_members import StreamsMember

from groupkeeper.client.admin.types import OffsetAndMetadata
from groupkeeper.protocol.messages.streams_group_heartbeat_request import Subtopology, TopicInfo

STREAMS_EMPTY = Stage("streams-empty")


COUNTING = (
    Subtopology("0", ["orders"], repartition_sink_topics=["app-by-repartition"]),
    Subtopology(
        "1",
        repartition_source_topics=[TopicInfo("app-by-repartition")],
        state_changelog_topics=[TopicInfo("app-store-changelog")],
    ),
)
STORED = (Subtopology("0", ["payments"], state_changelog_topics=[TopicInfo("idle-store-changelog")]),)
PLAIN = (Subtopology("0", ["payments"]),)

STREAMS_RECORDS = RECORDS | {
    "app-by-repartition": (2, 0, 1),
    "app-store-changelog": (0, 4, 0),
    "idle-store-changelog": (1, 1),
}

STREAMS = Stage(
    "streams",
    STREAMS_RECORDS,
    {("orders", 1): 5},
    {"billing": {("orders", 0): OffsetAndMetadata(4)}},
    streams_members=[
        StreamsMember(
            "app",
            "a-member-with-a-rather-long-id",
            "client-of-app",
            COUNTING,
            6,
            {("orders", 0): (4, -1), ("orders", 1): (15, 0), ("app-by-repartition", 0): (1, -1)},
        ),
        StreamsMember("two", "first", "client", PLAIN, 2),
        StreamsMember("two", "second", "client", PLAIN, None, process_id="process-2"),
        StreamsMember(
            "idle", "gone", "client", STORED, 2, {("payments", 0): (3, 0), ("payments", 1): (5, 0)}, leaves=True
        ),
        StreamsMember("waiting", "w", "client", [Subtopology("0", ["not-made-yet"])], None),
        StreamsMember(
            "100% of a long name, with $SIGNS",
            "m",
            "client",
            [Subtopology("0", ["a-topic-with-a-long-name"])],
            1,
            process_id="a-process-id-that-is-long",
        ),
    ],
)

CALCULATING = (
    Subtopology("0", ["orders"], repartition_sink_topics=["calc-by-repartition"]),
    Subtopology(
        "1",
        repartition_source_topics=[TopicInfo("calc-by-repartition")],
        state_changelog_topics=[TopicInfo("calc-store-changelog"), TopicInfo("store-of-another-name")],
    ),
)

STREAMS_CHANGES = Stage(
    "streams-changes",
    RECORDS
    | {
        "app-by-repartition": (2, 0, 1),
        "app-store-changelog": (0, 4, 0),
        "calc-by-repartition": (2, 0, 1),
        "calc-store-changelog": (0, 4, 0),
        "store-of-another-name": (0, 0, 0),
    },
    {("orders", 1): 5},
    {"billing": {("orders", 0): OffsetAndMetadata(4)}},
    files={"plan.csv": "orders,0,2\norders,1,999\n", "plans.csv": '"calc",orders,0,2\nzeta, orders,0,3\n'},
    streams_members=[
        StreamsMember("app", "m", "client", COUNTING, 6, {("orders", 0): (4, -1)}),
        StreamsMember(
            "calc",
            "m",
            "client",
            CALCULATING,
            6,
            {("orders", 0): (4, -1), ("orders", 1): (15, 0), ("calc-by-repartition", 0): (1, -1)},
            leaves=True,
        ),
        StreamsMember(
            "plain", "m", "client", PLAIN, 2, {("payments", 0): (3, 0), ("payments", 1): (5, 0)}, leaves=True
        ),
    ],
)
