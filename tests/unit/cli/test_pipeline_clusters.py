"""What the options that name clusters become for the pipeline's source."""

from __future__ import annotations

import json
from argparse import Namespace

from groupkeeper.cli.pipeline import source_of


def test_tables_are_of_what_is_committed_whatever_consumers_read() -> None:
    config = {"isolation.level": "read_uncommitted", "client.id": "me"}
    asked = Namespace(servers=[("a", "h:1"), ("b", "h:2")], contexts=[], command_config=config)
    clusters = json.loads(source_of(asked)["clusters"])
    for each in clusters if isinstance(clusters, list) else clusters.values():
        assert each["kafka.client.id"] == "me"
        assert "kafka.isolation.level" not in each
    alone = Namespace(servers=[(None, "h:1")], contexts=[], command_config=config)
    assert source_of(alone) == {"kafka.bootstrap.servers": "h:1", "kafka.client.id": "me"}
