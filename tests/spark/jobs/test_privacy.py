"""`--privacy`: what the tables keep of people, of clients that are known; nothing private reaches the disk."""

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from tests.acts import new_topic
from tests.spark.kafka.test_source import produce
from tests.spark.written_rows import rows_of

from groupkeeper.cli.main import main
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.as_of import as_of
from groupkeeper.pipeline.jobs.following.job import follow
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.jobs.watch import Watch
from groupkeeper.testing.background import BackgroundBroker

PATIENCE_S = 60
SECRETS = ("zq-client", "zq-metadata", "zq-static")
KEY = b"a key that nobody guesses".hex()
CHOICE = '{"hosts": "drop", "client_ids": "salt", "metadata": "drop"}'


def join(servers: str, topic: str, group: str, protocol: str) -> Consumer:
    """A member that has committed, with metadata, and is there; a static one of a classic group."""
    static = {"group.instance.id": "zq-static"} if protocol == "classic" else {}
    consumer = Consumer(
        {
            "bootstrap.servers": servers, "group.id": group, "client.id": "zq-client", "group.protocol": protocol,
            "auto.offset.reset": "earliest", "enable.auto.commit": False, **static,
        }
    )  # fmt: skip
    consumer.subscribe([topic])
    assert consumer.consume(1, PATIENCE_S)
    consumer.commit(offsets=[TopicPartition(topic, 0, 1, "zq-metadata")], asynchronous=False)
    return consumer


def found_in(directory: Path, texts: tuple[str, ...]) -> list[tuple[str, str]]:
    """What of these texts the files have, compressed pages included."""
    found = []
    for path in sorted(each for each in directory.rglob("*") if each.is_file()):
        rows = repr(pq.read_table(path).to_pylist()) if path.suffix == ".parquet" else ""
        whole = path.read_bytes()
        found += [(path.name, text) for text in texts if text in rows or text.encode() in whole]
    return found


class Kept(Watch):
    """Looks at the disk whenever something has been written."""

    def __init__(self, directory: Path, then: Callable[[], None] = lambda: None) -> None:
        self.directory, self.then = directory, then
        self.found: list[tuple[str, str]] = []

    def table(self, name: str, rows: int, *, is_appended: bool = False) -> None:
        self.found += found_in(self.directory, SECRETS)

    def waiting(self) -> None:
        self.then()


@pytest.mark.long
def test_nothing_private_reaches_the_disk_and_a_mix_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    tables, plain = tmp_path / "tables", tmp_path / "plain"
    with BackgroundBroker(properties={"group.initial.rebalance.delay.ms": "0"}) as broker:
        servers = broker.bootstrap_servers
        options = {"kafka.bootstrap.servers": servers, "cluster": "c"}
        private = {**options, "privacy": CHOICE, "privacySecret": KEY}
        topic = new_topic(servers, 1)
        produce(servers, topic, 5)
        members = [join(servers, topic, f"{protocol}-group", protocol) for protocol in ("classic", "consumer")]
        assert not snapshot(spark, options, str(plain)).problems
        assert {text for _, text in found_in(plain, SECRETS)} == set(SECRETS)
        watch = Kept(tables)
        assert not snapshot(spark, private, str(tables), watch).problems
        for member in members:
            member.close()
        stop = threading.Event()
        follow(spark, private, str(tables), stop, Kept(tables, stop.set), interval_s=1)
        assert watch.found == found_in(tables, SECRETS) == []
        for table in ("groups", "members", "lag", "group_events", "edges"):
            assert len(rows_of(tables, table)) >= 1 or table == "members"
        edges = {(row["group_id"], row["topic"], row["client_id"]) for row in rows_of(tables, "edges")}
        clients = {client for *_, client in edges if client is not None}
        assert len(clients) == 1
        assert re.fullmatch("[0-9a-f]{32}", clients.pop())
        events = {(row["event"], row["member_id"]) for row in rows_of(tables, "group_events")}
        joined, left = ({member for event, member in events if event == wanted} for wanted in ("joined", "left"))
        assert len(joined) == 2, "members are told apart"
        assert len(left & joined) == len(left) == 1, "and found again; the static one stays"
        for wrong, reason in (
            (options, "to salt takes a key: give --privacy-key FILE"),
            ({**private, "privacySecret": KEY[::-1]}, "its tables were salted with another key"),
            (
                {**options, "privacy": '{"hosts": "drop"}'},
                "its tables were begun with --privacy hosts=drop,client-ids=salt",
            ),
            (
                {**options, "privacy": '{"hosts": "keep"}'},
                "its tables were begun with --privacy hosts=drop,client-ids=salt",
            ),
        ):
            with pytest.raises(SourceError, match=re.escape(reason)):
                snapshot(spark, wrong, str(tables))
        with pytest.raises(SourceError, match="its tables keep hosts, client ids, member ids and metadata as they are"):
            snapshot(spark, private, str(plain))
        found = as_of(spark, {**options, "privacySecret": KEY}, str(tables), 2**42, wants=lambda _: True)
        assert {row.metadata for row in found.offsets["c"]} == {None}
        assert "the tables do not keep the metadata of commits" in found.summary.notes[0]
        assert found_in(tables, SECRETS) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--privacy", "hosts=hide"], "'hosts=hide': expected KIND=MODE"),
        (["--privacy", "hosts=drop,hosts=salt"], "hosts is given twice"),
        (["--privacy-key", "/nowhere/key"], "cannot read '/nowhere/key': No such file or directory"),
    ],
)
def test_wrong_arguments_are_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["pipeline", "snapshot", "--tables", "t", "--bootstrap-server", "localhost:1", *words])
    assert said in capsys.readouterr().err


def test_what_the_arguments_lack_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["pipeline", "snapshot", "--tables", "t", "--bootstrap-server", "localhost:1"]
    with pytest.raises(SystemExit, match="2"):
        main([*words, "--privacy", "client-ids=drop"])
    assert "argument --privacy: to salt takes a key: give --privacy-key FILE" in capsys.readouterr().err
