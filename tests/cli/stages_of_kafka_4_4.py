"""Stages of which the tools of Kafka 4.4 print something else than those of 4.3, or that only they can show."""

from tests.cli.stages import RESET_SET, SHARE
from tests.cli.streams_stages import STREAMS

SHARE_4_4 = SHARE._replace(
    name="share-4.4",
    release="4.4.0",
    commands=[
        f"{RESET_SET} --all-topics --to-offset 4 --dry-run",
        f"{RESET_SET} --topic orders:1,2 --to-offset 2 --dry-run --export",
        f"{RESET_SET} --topic orders --to-offset -1 --dry-run",
        f"{RESET_SET} --all-topics --to-offset 1e3 --dry-run",
        f"{RESET_SET} --all-topics --to-offset 1 --group left --dry-run",
        f"{RESET_SET} --all-topics --to-current --dry-run",
        f"{RESET_SET} --topic orders --topic payments --to-current --dry-run --export",
        f"{RESET_SET} --topic orders:9 --to-current --dry-run",
        "kafka-share-groups --reset-offsets --group left --all-topics --to-current --dry-run",
        "kafka-share-groups --reset-offsets --group nope --all-topics --to-current --dry-run --export",
        "kafka-share-groups --reset-offsets --group nope --all-topics --to-latest --execute",
        "kafka-share-groups --reset-offsets --group working --all-topics --to-current --dry-run",
        "kafka-share-groups --reset-offsets --group billing --topic orders --to-earliest --execute",
        "kafka-share-groups --delete --group billing",
        *(
            f"{RESET_SET} --from-file {{folder}}/{name} --dry-run"
            for name in ("one.csv", "groups.csv", "outside.csv", "below.csv", "words.csv", "short.csv", "none.csv")
        ),
        f"{RESET_SET} --from-file {{folder}}/one.csv --dry-run --export",
        f"{RESET_SET} --from-file= --dry-run",
        f"!{RESET_SET} --from-file {{folder}}/one.csv --execute --export",
        f"!{RESET_SET} --topic orders:0,2 --to-current --execute",
        f"!{RESET_SET} --topic orders --to-offset 7 --execute",
        "kafka-consumer-groups --reset-offsets --group billing --topic orders --to-offset 99 --dry-run",
        "kafka-consumer-groups --reset-offsets --group billing --from-file {folder}/groups.csv --dry-run",
    ],
    files={
        "one.csv": "orders,0,2\norders,1,8\npayments,1,3\n",
        "groups.csv": "set,orders,0,2\nother,orders,1,8\n",
        "outside.csv": "orders,0,99999\norders,1,0\n",
        "below.csv": "orders,0,-1\n",
        "words.csv": "orders,zero,1\n",
        "short.csv": "orders,0\n",
    },
)

STREAMS_4_4 = STREAMS._replace(
    name="streams-4.4",
    release="4.4.0",
    commands=[
        f"kafka-streams-groups {arguments}"
        for arguments in (
            "--describe --all-groups --state",
            "--describe --all-groups --state --verbose",
            "--describe --all-groups --topology",
            "--describe --group nope --topology",
            "--describe --group app --topology --members",
            "--list --topology",
            "--reset-offsets --group idle --to-earliest --dry-run",
        )
    ],
)
