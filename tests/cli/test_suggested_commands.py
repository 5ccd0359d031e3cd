"""Commands on pages and in notices run as they are printed, whatever the names of groups and topics are."""

import html
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.acts import commit, make_topic
from tests.unit.live.views import snapshot, view
from tests.unit.web.test_change_pages import SOMEBODY

from groupkeeper import SyncAdmin, shell
from groupkeeper.cli.dropin import kafka_share_groups, kafka_streams_groups
from groupkeeper.cli.framework.commands import parse
from groupkeeper.cli.framework.several_clusters import usable_clusters_of
from groupkeeper.cli.framework.typed import way_of
from groupkeeper.cli.main import main
from groupkeeper.client.admin.types import GroupType, TopicPartition
from groupkeeper.live.alerts import Key, _filled, helpful
from groupkeeper.live.limits import LimitFinding
from groupkeeper.rules.limits import Measure, Verdict
from groupkeeper.shell import Ways
from groupkeeper.testing.background import BackgroundBroker
from groupkeeper.web.changes.change_request import change_request_of
from groupkeeper.web.changes.desk import sweep_command
from groupkeeper.web.pages.change import change_page

PROGRAMS: dict[str, Callable[[list[str]], int]] = {
    "groupkeeper": main,
    "kafka-share-groups": kafka_share_groups.main,
    "kafka-streams-groups": kafka_streams_groups.main,
}
GROUPS = ["two  words", 'it\'s "it"', "$(touch ran)", "`touch ran`;touch ran", "-x", "--execute", "a*[b]?", "<b>&amp;"]
TOPIC = "-t"
CHANGES = [
    {"deed": ["reset"], "to": ["earliest"], "scope": ["all"]},
    {"deed": ["reset"], "to": ["shift"], "shift": ["-1"], "scope": ["some"], "topic": [TOPIC], "more": ["orders:0"]},
    {"deed": ["delete-offsets"], "scope": ["some"], "topic": [TOPIC]},
    {"deed": ["delete-offsets"], "scope": ["all"]},
    {"deed": ["delete"]},
    {"deed": ["clone"], "to-group": ["-y z"], "scope": ["all"]},
    {"deed": ["clone"], "to-cluster": ["other"], "scope": ["all"]},
]


class Place(NamedTuple):
    servers: str
    other: str
    folder: Path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Two clusters with these groups, and share groups whose names begin with "share "."""
    with BackgroundBroker() as one, BackgroundBroker() as two:
        for broker in (one, two):
            servers = broker.bootstrap_servers
            for topic in (TOPIC, "orders"):
                make_topic(servers, topic)
            with SyncAdmin(servers) as admin:
                for group_id in GROUPS:
                    commit(servers, group_id, {TopicPartition(topic, 0): 0 for topic in (TOPIC, "orders")})
                    start = {TopicPartition(TOPIC, 0): 0}
                    admin.alter_share_group_offsets(f"share {group_id}", start).all()
        yield Place(one.bootstrap_servers, two.bootstrap_servers, tmp_path_factory.mktemp("commands"))


@pytest.fixture(params=["servers", "configured servers", "context", "context with properties"])
def ways(place: Place, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Ways:
    """As of `groupkeeper serve`, which was started in another folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place.folder))
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", "off")
    monkeypatch.chdir(place.folder)
    Path("client.properties").write_text("client.id=mine\n")
    if request.param.startswith("context"):
        words = ["--context", "prod", "--bootstrap-server", f"other={place.other}"]
        more = ["--property", "client.id=mine"] if request.param != "context" else []
        main(["context", "add", "prod", "--bootstrap-server", place.servers, *more, "--replace"])
    else:
        words = ["--bootstrap-server", f"prod={place.servers}", "--bootstrap-server", f"other={place.other}"]
        words += ["--command-config", "client.properties"] if request.param != "servers" else []
    options = parse(["serve", *words])
    found = {name: way_of(options, cluster) for name, cluster in usable_clusters_of(options).items()}
    Path("elsewhere").mkdir(exist_ok=True)
    monkeypatch.chdir("elsewhere")
    return found


def all_words(texts: list[str], folder: Path) -> list[list[str]]:
    """What a shell makes of commands."""
    stubs = folder / "stubs"
    stubs.mkdir(exist_ok=True)
    for name in PROGRAMS:
        stub = stubs / name
        stub.write_text("#!/bin/sh\nprintf '%s\\0' \"${0##*/}\" \"$@\"; printf '\\1'\n")
        stub.chmod(0o755)
    environment = {**os.environ, "PATH": f"{stubs}:{os.environ['PATH']}"}
    script = "\n".join(texts)
    ran = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return [each.split("\0")[:-1] for each in ran.stdout.split("\1")[:-1]]


def suggested(ways: Ways) -> list[tuple[str, str]]:
    """All kinds of commands for all groups."""
    found = [("", helpful(Key("r", "prod", ""), [], ways))]
    for group_id in GROUPS:
        key = Key("r", "prod", group_id)
        broken = [LimitFinding(group_id, each, Verdict.BROKEN, 1, 0) for each in Measure]
        found += ((group_id, helpful(key, [each], ways)) for each in broken if each.measure is not Measure.REBALANCES)
        found.append((group_id, _filled("groupkeeper groups describe {where} {group}", key, ways)))
        found += ((group_id, shell.text(change_request_of(form, "prod", group_id, ways).command)) for form in CHANGES)
        found.append((group_id, shell.text(sweep_command(ways["prod"], ["--missing-topics"], [group_id]))))
        share_id = f"share {group_id}"
        form = {"deed": ["reset"], "to": ["latest"], "scope": ["some"], "topic": [TOPIC]}
        found.append((share_id, shell.text(change_request_of(form, "prod", share_id, ways, is_share=True).command)))
        found += ((share_id, text) for text in on_page(share_id, GroupType.SHARE, ways))
        found += ((group_id, text) for text in on_page(group_id, GroupType.STREAMS, ways))
    return found


def on_page(group_id: str, group_type: GroupType, ways: Ways) -> list[str]:
    group = view(group_id)._replace(group_type=group_type)
    page = change_page(snapshot(group), group, SOMEBODY, "", [], ways["prod"])
    return [html.unescape(each) for each in re.findall("<code>(kafka-.*?)</code>", page)]


def test_every_kind_of_command_runs(ways: Ways, place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    texts = suggested(ways)
    read = all_words([text for _, text in texts], place.folder)
    assert not list(place.folder.rglob("ran"))
    assert [shlex.split(text) for _, text in texts] == read
    capfd.readouterr()
    deletions = []
    for (group_id, text), (program, *words) in zip(texts, read, strict=True):
        if program != "groupkeeper" and "--delete" in words:
            deletions.append((group_id, program, words))  # these do it at once
            continue
        status = run(program, words)
        out, errors = capfd.readouterr()
        assert status == 0, (text, out, errors)
        others = [each for each in GROUPS if each != group_id.removeprefix("share ") and group_id]
        named = re.sub(r"\s+", " ", out + errors)
        # A sweep of these finds nothing; had it taken the name for another one, it would say so.
        said = "note: there is nothing to plan" if "sweep" in words else re.sub(r"\s+", " ", group_id)
        assert said in named, (text, out, errors)
        assert not any(re.search(rf"(^|\s){re.escape(each)}\s", out) for each in others), (text, out)
    assert len(deletions) == 2 * len(GROUPS)
    if "client.properties" in texts[-1][1]:  # once is enough
        for group_id, program, words in deletions:
            if program == "kafka-share-groups":
                assert run(program, words) == 0
                assert f"'{group_id}'" in capfd.readouterr().out


def run(program: str, words: list[str]) -> int:
    try:
        return PROGRAMS[program](words)
    except SystemExit as ended:
        return int(ended.code or 0)


def test_a_watch_runs(place: Place) -> None:
    ways = {"prod": shell.way_of_servers(place.servers)}
    text = helpful(Key("r", "prod", 'it\'s "it"'), [LimitFinding("g", Measure.REBALANCES, Verdict.BROKEN, 1, 0)], ways)
    options = parse(shlex.split(text)[1:])
    assert (options.groups, options.bootstrap_server) == (['it\'s "it"'], place.servers)


def test_a_command_without_a_known_cluster_leaves_the_address_to_the_reader() -> None:
    words = shell.command(shell.way_to("prod", {}), ["undo"], ["-id"])
    assert words[2:] == ("--bootstrap-server", "HOST:PORT", "--", "-id")
