"""How long clusters keep offsets: asked of them, and taken for granted where they don't tell."""

import json

from groupkeeper.broker.authorizer import RuleAuthorizer
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.kafka.planning import Range
from groupkeeper.pipeline.kafka.retention import Retention, ask_retentions
from groupkeeper.testing.background import BackgroundBroker


def test_each_cluster_tells_its_own() -> None:
    own = {"offsets.retention.minutes": "90", "offsets.retention.check.interval.ms": "5000"}
    with BackgroundBroker(properties=own) as one, BackgroundBroker(authorizer=RuleAuthorizer()) as locked:
        addresses = {"one": one.bootstrap_servers, "locked": locked.bootstrap_servers, "away": "127.0.0.1:1"}
        clusters = {name: {"kafka.bootstrap.servers": each} for name, each in addresses.items()}
        options = parse_options(
            {"clusters": json.dumps(clusters), "rows": "decoded", "kafka.default.api.timeout.ms": "1000"}
        )
        ranges = [Range(number, name, "__consumer_offsets", 0, 0, 1) for number, name in enumerate(addresses)]
        asked = ask_retentions(options, ranges)
    assert asked.by_cluster == {"one": Retention(90 * 60_000, 5000)}
    told, away = asked.notes
    assert told.startswith("cluster locked does not report offsets.retention.minutes (ClusterAuthorizationFailed")
    assert told.endswith("7 days are taken for it")
    assert away.startswith("cluster away does not report offsets.retention.minutes (")
