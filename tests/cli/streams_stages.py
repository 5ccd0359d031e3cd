"""Stages with streams groups: what the official tool prints of them, and what it changes."""

from tests.cli.stages import RECORDS, SHARE_VIEWS, Stage
from tests.cli.streams_members import StreamsMember

from groupkeeper.client.admin.types import OffsetAndMetadata
from groupkeeper.protocol.messages.streams_group_heartbeat_request import Subtopology, TopicInfo

STREAMS_USAGE = [
    f"kafka-streams-groups {arguments}".strip()
    for arguments in (
        "",
        "--group g",
        "--list --zap",
        "--list --describe --group g",
        "--list --describe --all-groups --input-topic t",
        "--list --delete --all-groups",
        "--list --group g",
        "--list --input-topic t",
        "--list --all-input-topics",
        "--list --members",
        "--list --verbose",
        "--list --execute",
        "--list --state Sleeping",
        "--list --state stable,Sleeping,",
        "--list --state PreparingRebalance",
        "--list --state not_ready",
        "--list --state ,",
        "--list --state 'Stable, empty'",
        "--list --state=",
        "--list --state a --state b",
        "--list --timeout abc",
        "--list --timeout 1 --timeout 2",
        "--list --timeout 99999999999999999999",
        "--list --to-offset x",
        "--list --shift-by 1 --shift-by 2",
        "--list --by-duration x --by-duration y",
        "--list --command-config {folder}/none.properties",
        "--list --all-groups",
        "--describe",
        "--describe --group",
        "--describe --group g --all-groups",
        "--describe --group g --input-topic t",
        "--describe --group g --topic t",
        "--describe --group g --members --offsets",
        "--describe --group g --state Stable",
        "--describe --group g --state --state",
        "--describe --group g --state a --state b",
        "--describe --delete --group g",
        "--delete",
        "--delete --group g --all-groups",
        "--delete --group g --input-topic t",
        "--delete --group g --all-input-topics",
        "--delete --group g --delete-internal-topic t",
        "--delete --group g --dry-run",
        "--delete-offsets",
        "--delete-offsets --group g",
        "--delete-offsets --input-topic t",
        "--delete-offsets --group g --group h --input-topic t",
        "--delete-offsets --all-groups --input-topic t",
        "--delete-offsets --group g --all-groups --input-topic t",
        "--delete-offsets --group g --input-topic t --delete-all-internal-topics",
        "--reset-offsets",
        "--reset-offsets --execute --dry-run",
        "--reset-offsets --dry-run",
        "--reset-offsets --dry-run --group g --all-groups --all-input-topics --to-latest",
        "--reset-offsets --group g --all-input-topics --to-latest",
        "--reset-offsets --dry-run --group g --all-input-topics --to-latest --to-earliest",
        "--reset-offsets --dry-run --group g --all-input-topics --to-latest --to-datetime x",
        "--reset-offsets --dry-run --group g --input-topic t --to-current --from-file f --shift-by 1",
        "--reset-offsets --dry-run --group g --input-topic t --list --to-latest",
        "--reset-offsets --dry-run --group g --input-topic t --to-latest --delete-all-internal-topics",
        "--reset-offsets --dry-run --group g --input-topic t --to-latest --delete-internal-topic t",
        "--list --delete-all-internal-topics",
        "--version",
    )
]

STREAMS_EMPTY = Stage(
    "streams-empty",
    [
        *STREAMS_USAGE,
        "kafka-streams-groups --list",
        "kafka-streams-groups --list --state",
        "kafka-streams-groups --describe --all-groups",
        "kafka-streams-groups --describe --all-groups --state --verbose",
        "kafka-streams-groups --describe --group nope",
        "kafka-streams-groups --describe --group nope --group zip --state",
        "kafka-streams-groups --describe --group=",
    ],
)


def streams_views(group: str) -> list[str]:
    """A description of a streams group, or --all-groups, in all views."""
    return [f"kafka-streams-groups --describe {group} {view}".strip() for view in SHARE_VIEWS]


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
    [
        "kafka-streams-groups --list",
        "kafka-streams-groups --list --state",
        "kafka-streams-groups --list --state stable",
        "kafka-streams-groups --list --state EMPTY,Dead,Reconciling",
        "kafka-streams-groups --list --state NotReady",
        *streams_views("--group app"),
        *streams_views("--group idle"),
        *streams_views("--group waiting"),
        *streams_views("--group '100% of a long name, with $SIGNS'"),
        "kafka-streams-groups --describe --group two --state --verbose",
        "kafka-streams-groups --describe --all-groups",
        "kafka-streams-groups --describe --all-groups --members",
        "kafka-streams-groups --describe --all-groups --state",
        "kafka-streams-groups --describe --group app --group idle --group app --state",
        "kafka-streams-groups --describe --group app --group nope --group idle",
        "kafka-streams-groups --describe --group billing",
        "kafka-streams-groups --describe --group idle --group billing --state",
        "kafka-groups --list",
        "kafka-groups --list --streams",
        "kafka-groups --list --protocol streams",
        "kafka-consumer-groups --list --state --type",
        "kafka-consumer-groups --describe --group app",
        "kafka-share-groups --list",
        "kafka-share-groups --describe --group app",
    ],
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

RESET_CALC = "kafka-streams-groups --reset-offsets --group calc"
CALC_TOPICS = "--delete-internal-topic calc-store-changelog --delete-internal-topic calc-by-repartition"
RESET_PLAIN = "kafka-streams-groups --reset-offsets --group plain"

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
    [
        f"{RESET_CALC} --dry-run",
        f"{RESET_CALC} --to-latest --dry-run",
        f"{RESET_CALC} --all-input-topics --dry-run",
        f"{RESET_CALC} --all-input-topics --to-earliest --dry-run",
        f"{RESET_CALC} --all-input-topics --to-latest --dry-run",
        f"{RESET_CALC} --all-input-topics --to-current --dry-run",
        f"{RESET_CALC} --all-input-topics --to-current --dry-run --export",
        f"{RESET_CALC} --all-input-topics --to-offset 7 --dry-run",
        f"{RESET_CALC} --all-input-topics --to-offset x --dry-run",
        f"{RESET_CALC} --all-input-topics --shift-by 3 --dry-run",
        f"{RESET_CALC} --all-input-topics --shift-by=-11 --dry-run",
        f"{RESET_CALC} --all-input-topics --to-datetime 2023-11-14T22:13:23.500 --dry-run",
        f"{RESET_CALC} --all-input-topics --to-datetime 2024-01-01T00:00:00.000 --dry-run",
        f"{RESET_CALC} --all-input-topics --to-datetime yesterday --dry-run",
        f"{RESET_CALC} --all-input-topics --by-duration PT1H --dry-run",
        f"{RESET_CALC} --all-input-topics --by-duration P1M --dry-run",
        f"{RESET_CALC} --input-topic orders --to-latest --dry-run",
        f"{RESET_CALC} --input-topic orders:0,1 --to-latest --dry-run",
        f"{RESET_CALC} --input-topic orders:0 --shift-by 1 --dry-run",
        f"{RESET_CALC} --input-topic calc-by-repartition:0 --to-earliest --dry-run",
        f"{RESET_CALC} --input-topic payments --to-current --dry-run",
        f"{RESET_CALC} --input-topic nothere --to-earliest --dry-run",
        f"{RESET_CALC} --input-topic orders:9 --to-earliest --dry-run",
        f"{RESET_CALC} --input-topic orders:one --to-earliest --dry-run",
        f"{RESET_CALC} --input-topic orders: --to-earliest --dry-run",
        f"{RESET_CALC} --input-topic= --to-earliest --dry-run",
        f"{RESET_CALC} --from-file {{folder}}/plan.csv --dry-run",
        f"{RESET_CALC} --from-file {{folder}}/plans.csv --dry-run",
        f"{RESET_CALC} --from-file {{folder}}/none.csv --dry-run",
        f"{RESET_CALC} --group plain --from-file {{folder}}/plans.csv --dry-run",
        f"{RESET_CALC} --group plain --all-input-topics --to-current --dry-run --export",
        f"{RESET_PLAIN} --from-file {{folder}}/plans.csv --dry-run",
        f"{RESET_CALC} --group app --all-input-topics --to-latest --dry-run",
        "kafka-streams-groups --reset-offsets --all-groups --all-input-topics --to-latest --dry-run",
        "kafka-streams-groups --reset-offsets --group app --all-input-topics --to-latest --execute",
        "kafka-streams-groups --reset-offsets --group nope --all-input-topics --to-latest --dry-run",
        "kafka-streams-groups --reset-offsets --group nope --input-topic orders --to-latest --dry-run",
        "kafka-streams-groups --reset-offsets --group nope --input-topic orders --to-current --dry-run",
        "kafka-streams-groups --reset-offsets --group nope --input-topic orders --to-latest --execute",
        "kafka-streams-groups --reset-offsets --group billing --all-input-topics --to-latest --dry-run",
        "kafka-streams-groups --reset-offsets --group billing --input-topic orders:0 --to-latest --dry-run",
        "kafka-streams-groups --reset-offsets --group= --all-input-topics --to-latest --dry-run",
        f"!{RESET_CALC} --all-input-topics --to-latest --execute",
        f"!{RESET_CALC} --from-file {{folder}}/plan.csv --execute --export",
        f"!{RESET_CALC} --input-topic orders:0 --to-earliest --execute {CALC_TOPICS}",
        f"!{RESET_CALC} --input-topic orders:0 --to-earliest --execute --delete-internal-topic nothere",
        f"!{RESET_PLAIN} --all-input-topics --to-earliest --execute --delete-all-internal-topics",
        "kafka-streams-groups --delete-offsets --group app --input-topic orders",
        "kafka-streams-groups --delete-offsets --group app --all-input-topics",
        "kafka-streams-groups --delete-offsets --group nope --input-topic orders:0",
        "kafka-streams-groups --delete-offsets --group nope --all-input-topics",
        "kafka-streams-groups --delete-offsets --group billing --all-input-topics",
        "kafka-streams-groups --delete-offsets --group= --input-topic orders",
        "kafka-streams-groups --delete-offsets --group plain --input-topic nothere --input-topic payments:7",
        "kafka-streams-groups --delete-offsets --group plain --input-topic payments:one",
        "!kafka-streams-groups --delete-offsets --group billing --input-topic orders:0",
        "!kafka-streams-groups --delete-offsets --group calc --input-topic orders --input-topic payments:1",
        "!kafka-streams-groups --delete-offsets --group calc --all-input-topics",
        "kafka-streams-groups --delete --group app",
        "kafka-streams-groups --delete --group nope --group billing --group app",
        "kafka-streams-groups --delete --group=",
        "!kafka-streams-groups --delete --group plain",
        "!kafka-streams-groups --delete --group plain --group calc --group plain",
        "!kafka-streams-groups --delete --group plain --group nope --group app --group calc",
        "!kafka-streams-groups --delete --group plain --delete-all-internal-topics",
        "!kafka-streams-groups --delete --group calc --group plain --delete-all-internal-topics",
        "!kafka-streams-groups --delete --group calc --group app --delete-all-internal-topics",
        "!kafka-streams-groups --delete --all-groups --delete-all-internal-topics",
        # Their effects, without putting anything back.
        f"{RESET_CALC} --input-topic orders:0 --shift-by 2 --execute",
        f"{RESET_CALC} --all-input-topics --to-current --dry-run --timeout 20001",
        "kafka-streams-groups --delete-offsets --group calc --input-topic orders:1",
        f"{RESET_CALC} --all-input-topics --to-earliest --execute --delete-all-internal-topics",
        f"{RESET_CALC} --all-input-topics --to-current --dry-run --timeout 20002",
        "kafka-get-offsets --exclude-internal-topics",
        f"{RESET_CALC} --all-input-topics --to-latest --execute --delete-all-internal-topics",
        "kafka-streams-groups --delete --group calc --delete-all-internal-topics",
        "kafka-streams-groups --list --state",
        f"{RESET_PLAIN} --all-input-topics --to-latest --execute --delete-internal-topic payments",
        "kafka-streams-groups --delete-offsets --group plain --input-topic payments --input-topic orders:2",
        "kafka-get-offsets --exclude-internal-topics --time -1",
        "kafka-streams-groups --describe --group plain --state",
    ],
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
